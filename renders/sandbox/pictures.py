"""Draws the stand-in's results: the prompt on a field of colours that derive from it."""

import colorsys
import hashlib
import io
import math
import random
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFilter

from .lettering import LINE_HEIGHT, bundled_font, fit_lines

SIZE = 768
CLIP_SIZE = 384
CLIP_FRAMES = 16
CLIP_FRAME_MILLISECONDS = 90
# The field is soft: drawn smaller and enlarged, it looks the same and costs an eighth.
COARSER = 4
LABEL = "Sume sandbox: a stand-in, not a model's work"
Colour = tuple[int, int, int]


def draw_picture(prompt: str) -> bytes:
    """A PNG of 768 x 768 pixels. Any text is fine; the same text gives the same picture."""
    image = _write(_field(prompt, SIZE), _lettering(prompt, SIZE))
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue()


def draw_clip(prompt: str) -> bytes:
    """An endless GIF of 384 x 384 pixels and 1.4 s, in which the colours wander."""
    lettering = _lettering(prompt, CLIP_SIZE)
    frames = [
        _write(_field(prompt, CLIP_SIZE, turn=number / CLIP_FRAMES), lettering)
        for number in range(CLIP_FRAMES)
    ]
    # One palette for all frames, undithered: else the field flickers.
    strip = Image.new("RGB", (CLIP_SIZE, CLIP_SIZE * 4))
    for row in range(4):
        strip.paste(frames[row * CLIP_FRAMES // 4], (0, CLIP_SIZE * row))
    palette = strip.quantize(256)
    small = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    out = io.BytesIO()
    small[0].save(
        out,
        "GIF",
        save_all=True,
        append_images=small[1:],
        duration=CLIP_FRAME_MILLISECONDS,
        loop=0,
    )
    return out.getvalue()


def _seeded(prompt: str) -> random.Random:
    digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).digest()
    return random.Random(digest)  # noqa: S311 - colours, no secrets


def _colours(dice: random.Random) -> list[Colour]:
    hue = dice.random()
    step = dice.choice((-0.16, -0.1, 0.1, 0.16))
    tones = [(0.0, 0.80, 0.42), (step, 0.72, 0.72), (step * 1.7, 0.60, 0.96), (-step, 0.55, 0.92)]
    return [_rgb(hue + shift, saturation, value) for shift, saturation, value in tones]


def _rgb(hue: float, saturation: float, value: float) -> Colour:
    red, green, blue = colorsys.hsv_to_rgb(hue % 1.0, saturation, value)
    return round(red * 255), round(green * 255), round(blue * 255)


def _field(prompt: str, size: int, turn: float = 0.0) -> Image.Image:
    """The background: a slanted gradient with soft lights. `turn` (0 to 1) moves the lights."""
    small = _small_field(prompt, size // COARSER, turn)
    return small.resize((size, size), Image.Resampling.BICUBIC)


def _small_field(prompt: str, size: int, turn: float) -> Image.Image:
    dice = _seeded(prompt)
    deep, middle, bright, light = _colours(dice)
    slope = Image.linear_gradient("L").resize((size * 2, size * 2))
    slope = slope.rotate(dice.uniform(20, 70), resample=Image.Resampling.BICUBIC)
    slope = slope.crop((size // 2, size // 2, size // 2 + size, size // 2 + size))
    image = Image.composite(
        Image.new("RGB", (size, size), middle), Image.new("RGB", (size, size), deep), slope
    )
    for colour, strength in ((light, 0.75), (bright, 0.9), (deep, 0.6), (bright, 0.6)):
        angle = 2 * math.pi * (dice.random() + turn)
        x = size * (dice.uniform(0.1, 0.9) + 0.16 * math.cos(angle))
        y = size * (dice.uniform(0.1, 0.9) + 0.16 * math.sin(angle))
        diameter = round(size * dice.uniform(0.9, 1.5))
        _shine(image, round(x), round(y), diameter, colour, strength)
    return image


def _shine(
    image: Image.Image, x: int, y: int, diameter: int, colour: Colour, strength: float
) -> None:
    glow = _glow().resize((diameter, diameter)).point(lambda level: round(level * strength))
    spot = Image.new("RGB", (diameter, diameter), colour)
    image.paste(spot, (x - diameter // 2, y - diameter // 2), glow)


@lru_cache(maxsize=1)
def _glow() -> Image.Image:
    """A round light, bright in the middle, that ends without an edge."""
    # The gradient is 0 in the middle and 255 at half the side; beyond that it must stay dark.
    return Image.radial_gradient("L").point([_smooth(1 - level / 181) for level in range(256)])


def _smooth(share: float) -> int:
    share = max(0.0, share)
    return round(255 * share * share * (3 - 2 * share))


def _lettering(text: str, size: int) -> tuple[Image.Image, Image.Image]:
    """Two masks: a soft shadow, and the letters upon it."""
    lines, font = fit_lines(text, width=round(size * 0.80), height=round(size * 0.66))
    letters = Image.new("L", (size, size), 0)
    draw = ImageDraw.Draw(letters)
    step = font.size * LINE_HEIGHT
    top = (size - step * (len(lines) - 1)) / 2
    for row, line in enumerate(lines):
        draw.text((size / 2, top + step * row), line, font=font, fill=255, anchor="mm")
    small = bundled_font(max(10, size // 48))
    draw.text((size / 2, size * 0.955), LABEL, font=small, fill=220, anchor="mm")
    shadow = letters.filter(ImageFilter.GaussianBlur(size / 70))
    return shadow.point(lambda level: min(150, level * 2)), letters


def _write(image: Image.Image, lettering: tuple[Image.Image, Image.Image]) -> Image.Image:
    shadow, letters = lettering
    image.paste((10, 8, 24), (0, 0), shadow)
    image.paste((255, 255, 255), (0, 0), letters)
    return image
