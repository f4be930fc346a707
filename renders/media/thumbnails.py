"""Thumbnails of pictures, for pages that show many."""

import io
import logging
import os
from typing import BinaryIO

from PIL import Image, ImageOps

logger = logging.getLogger(__name__)

CONTENT_TYPE = "image/webp"
MOST_PIXELS_A_SIDE = 480
# A decoded picture takes up to four bytes of memory per pixel.
MOST_PIXELS = 40_000_000
MOST_BYTES = 50_000_000
DECODERS = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
    "image/avif": "AVIF",
}


def draw(file: BinaryIO, content_type: str) -> bytes | None:
    """The thumbnail as WebP, upright and without metadata; None if none can be made.

    An animated picture is shown by its first frame.
    """
    decoder = DECODERS.get(content_type)
    if decoder is None:
        return None
    try:
        size = file.seek(0, os.SEEK_END)
        if size > MOST_BYTES:
            logger.warning("No thumbnail: %d bytes are too many.", size)
            return None
        file.seek(0)
        with Image.open(file, formats=[decoder]) as image:
            if image.width * image.height > MOST_PIXELS:
                logger.warning("No thumbnail: %d x %d pixels are too many.", *image.size)
                return None
            return _draw(image)
    except Exception as error:  # noqa: BLE001 (a decoder may raise anything over a broken file)
        logger.warning("No thumbnail: the picture cannot be read (%s).", type(error).__name__)
        return None


def _draw(image: Image.Image) -> bytes:
    """An open image as a small WebP."""
    size = (MOST_PIXELS_A_SIDE, MOST_PIXELS_A_SIDE)
    image.draft("RGB", (2 * size[0], 2 * size[1]))  # a JPEG is decoded at a reduced size
    mode = "RGBA" if image.has_transparency_data else "RGB"
    small = image if image.mode == mode else image.convert(mode)  # no second copy in memory
    small.thumbnail(size)
    ImageOps.exif_transpose(small, in_place=True)
    small.info.clear()
    out = io.BytesIO()
    small.save(out, "WEBP", quality=80)
    return out.getvalue()
