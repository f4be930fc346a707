"""What the sandbox draws."""

import io
import json
from unittest.mock import patch

import pytest
from PIL import Image

from renders.sandbox import pictures
from renders.sandbox.lettering import clean, fit_lines
from renders.sandbox.media import Signer

TEXTS = [
    "a fox",
    "",
    "   ",
    "x" * 10_000,
    "many words " * 900,
    "\x00\x07\x1b[31m\r\n\t",
    "\ud800 lone surrogate",
    "\U0001f98a\U0001f525",
    "\u72d0",
    "\u202eright to left\u202c \u0301\u0301\u0301",
    json.dumps({"not": "a prompt"}),
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_any_text_gives_a_picture(text):
    image = Image.open(io.BytesIO(pictures.draw_picture(text)))
    image.load()
    assert (image.format, image.size) == ("PNG", (768, 768))


@pytest.mark.parametrize("text", ["a fox", "\ud800\x00"])
def test_a_clip_moves(text):
    with patch.object(pictures, "CLIP_FRAMES", 4), patch.object(pictures, "CLIP_SIZE", 96):
        image = Image.open(io.BytesIO(pictures.draw_clip(text)))
    assert (image.format, image.size, image.n_frames) == ("GIF", (96, 96), 4)
    first = image.convert("RGB").tobytes()
    image.seek(2)
    assert image.convert("RGB").tobytes() != first


def test_the_colours_derive_from_the_prompt():
    assert pictures.draw_picture("a fox") == pictures.draw_picture("a fox")
    assert pictures.draw_picture("a fox") != pictures.draw_picture("a fix")


def test_letters_that_the_font_lacks_are_shown_by_their_likeness_or_left_out():
    assert clean("Gr\u00fc\u00dfe\x00\u2019 \U0001f98a") == "Grusse ' "


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_the_lines_fit_the_box(text):
    lines, font = fit_lines(text, width=400, height=300)
    assert all(font.getlength(line) <= 400 for line in lines)
    assert len(lines) * font.size <= 300


def test_a_longer_text_has_smaller_letters():
    sizes = [fit_lines("word " * n, width=600, height=500)[1].size for n in (1, 20, 80)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3


def test_a_signature_serves_for_its_own_file_and_sandbox_only():
    signer = Signer()
    signature = signer.path("job_a", "picture.png").partition("signature=")[2]
    assert signer.valid("job_a", "picture.png", signature)
    assert not signer.valid("job_b", "picture.png", signature)
    assert not signer.valid("job_a", "clip.gif", signature)
    assert not signer.valid("job_a", "picture.png", "")
    assert not signer.valid("job_a", "picture.png", "\u00e9\ud800")
    assert not Signer().valid("job_a", "picture.png", signature)
