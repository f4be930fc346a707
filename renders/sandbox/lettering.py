"""Fits any text into a box: cleans it, wraps it, finds the size of the letters."""

import unicodedata
from functools import lru_cache

from PIL import ImageFont

Font = ImageFont.FreeTypeFont
# More than this is never legible in one picture.
MAX_CHARACTERS = 900
LINE_HEIGHT = 1.28
LIKENESSES = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2013": "-",
        "\u2014": "-",
        "\u00df": "ss",
        "\u00e6": "ae",
        "\u00f8": "o",
        "\u0142": "l",
    }
)
SIZES = (0.15, 0.12, 0.1, 0.085, 0.07, 0.06, 0.05, 0.042)


def fit_lines(text: str, *, width: int, height: int) -> tuple[list[str], Font]:
    """Lines of `text` no wider than `width` pixels, and the greatest font that fits `height`.

    What does not fit at the smallest size is cut off with an ellipsis. Text with no letter
    that the bundled font knows gives no lines.
    """
    words = clean(text).split()
    for share in SIZES:
        font = bundled_font(max(9, round(width * share)))
        lines = _wrap(words, font, width)
        rows = int(height / (font.size * LINE_HEIGHT))
        # Whole words look better than great letters.
        unbroken = all(font.getlength(word) <= width for word in words)
        if len(lines) <= rows and (unbroken or share == SIZES[-1]):
            return lines, font
    lines = lines[: max(1, rows)]
    while lines[-1] and font.getlength(lines[-1] + "...") > width:
        lines[-1] = lines[-1][:-1]
    lines[-1] += "..."
    return lines, font


def clean(text: str) -> str:
    """Text in letters that the bundled font has; what has no likeness there is left out."""
    shown = []
    for character in text[:MAX_CHARACTERS].translate(LIKENESSES):
        # Pillow's font knows plain letters only: of an umlaut its base letter is shown.
        for part in unicodedata.normalize("NFKD", character):
            if part.isspace() or unicodedata.category(part) == "Cc":
                shown.append(" ")
            elif _drawable(part):
                shown.append(part)
    if len(text) > MAX_CHARACTERS:
        shown.append("...")
    return "".join(shown)


@lru_cache(maxsize=64)
def bundled_font(size: int) -> Font:
    """Pillow's own font. `size` in pixels. Raises RuntimeError if Pillow lacks FreeType."""
    font = ImageFont.load_default(size=size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise RuntimeError("Pillow was built without FreeType; install a Pillow wheel from PyPI.")
    return font


@lru_cache(maxsize=4096)
def _drawable(character: str) -> bool:
    if unicodedata.category(character) in ("Cs", "Cf", "Co", "Cn", "Mn"):
        return False
    return _outline(character) != _outline("\U0010fffd")


def _outline(character: str) -> tuple[tuple[int, int], bytes]:
    mask = bundled_font(24).getmask(character)
    return mask.size, bytes(mask)


def _wrap(words: list[str], font: Font, width: int) -> list[str]:
    lines: list[str] = []
    for word in words:
        pieces = _pieces(word, font, width)
        joined = f"{lines[-1]} {pieces[0]}" if lines else ""
        if lines and font.getlength(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(pieces[0])
        lines.extend(pieces[1:])
    return lines


def _pieces(word: str, font: Font, width: int) -> list[str]:
    """A word cut where it is wider than the box."""
    if font.getlength(word) <= width:
        return [word]
    pieces = [""]
    for character in word:
        if pieces[-1] and font.getlength(pieces[-1] + character) > width:
            pieces.append("")
        pieces[-1] += character
    return pieces
