"""A thumbnail shows the picture upright and small, and nothing else of it."""

import io
import struct
import zlib

import pytest
from PIL import Image

from renders.media import thumbnails


def encoded(image, kind="PNG", **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def drawn(data, kind="PNG"):
    """The thumbnail as a picture, or None."""
    small = thumbnails.draw(io.BytesIO(data), f"image/{kind.lower()}")
    return small and Image.open(io.BytesIO(small))


@pytest.mark.parametrize(
    ("size", "small"),
    [((960, 480), (480, 240)), ((300, 1200), (120, 480)), ((20, 10), (20, 10)), ((1, 1), (1, 1))],
)
def test_it_fits_into_its_square_and_is_never_enlarged(size, small):
    picture = drawn(encoded(Image.new("RGB", size, "red")))

    assert picture.format == "WEBP"
    assert picture.size == small


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "AVIF"])
def test_each_kind_of_picture_has_one(kind):
    red, green, blue = (
        drawn(encoded(Image.new("RGB", (64, 64), "red"), kind), kind)
        .convert("RGB")
        .getpixel((32, 32))
    )

    assert red > 200 > 50 > max(green, blue)


MODES = [("1", "PNG"), ("L", "PNG"), ("P", "PNG"), ("LA", "PNG"), ("I;16", "PNG"), ("RGBA", "PNG")]
MODES += [("CMYK", "JPEG"), ("L", "JPEG")]


@pytest.mark.parametrize(("mode", "kind"), MODES, ids=[" ".join(pair) for pair in MODES])
def test_pictures_of_every_mode_have_one(mode, kind):
    picture = drawn(encoded(Image.new(mode, (600, 600)), kind), kind)

    assert picture.size == (480, 480)
    assert picture.mode in {"RGB", "RGBA"}


def test_what_is_transparent_stays_so():
    clear = Image.new("RGBA", (10, 10), (255, 0, 0, 0))

    assert drawn(encoded(clear)).convert("RGBA").getpixel((5, 5))[3] == 0
    assert drawn(encoded(clear.quantize())).convert("RGBA").getpixel((5, 5))[3] == 0


def test_it_is_upright_and_holds_no_metadata():
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    exif[0x010F] = "a camera"
    exif.get_ifd(0x8825)[1] = "N"
    data = encoded(Image.new("RGB", (800, 400)), "JPEG", exif=exif, comment=b"a comment")

    picture = drawn(data, "JPEG")

    assert picture.size == (240, 480)
    assert not picture.getexif()
    assert not {"exif", "icc_profile", "xmp", "comment"} & set(picture.info)


def test_of_a_picture_that_moves_it_is_the_first_frame():
    frames = [Image.new("RGB", (30, 30), colour) for colour in ("red", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])

    picture = drawn(data, "GIF")

    assert getattr(picture, "n_frames", 1) == 1
    assert picture.convert("RGB").getpixel((5, 5))[0] > 200


def bomb(width, height):
    """A small PNG file that says it is a huge picture."""

    def chunk(name, data):
        body = name + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", head),
            chunk(b"IDAT", zlib.compress(bytes(1000))),
            chunk(b"IEND", b""),
        ]
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>",
        encoded(Image.new("RGB", (64, 64), "red"))[:60],
        encoded(Image.effect_noise((64, 64), 90))[:-900],
        bomb(7000, 7000),
        bomb(20_000, 20_000),
        bomb(2**31 - 1, 2**31 - 1),
        encoded(Image.new("RGB", (64, 64)), "JPEG"),
    ],
    ids=["nothing", "page", "cut early", "cut late", "large", "bomb", "huge bomb", "another kind"],
)
def test_a_picture_that_cannot_be_drawn_has_none_and_raises_nothing(data):
    assert drawn(data) is None


@pytest.mark.parametrize("kind", ["video/mp4", "image/svg+xml", "application/octet-stream", ""])
def test_what_is_no_picture_has_none(kind):
    assert thumbnails.draw(io.BytesIO(encoded(Image.new("RGB", (9, 9)))), kind) is None


def test_a_file_that_is_too_large_has_none(monkeypatch):
    data = encoded(Image.new("RGB", (20, 10), "red"))
    assert thumbnails.MOST_BYTES == 50_000_000
    monkeypatch.setattr(thumbnails, "MOST_BYTES", len(data))
    assert drawn(data)

    assert drawn(data + b"x") is None
