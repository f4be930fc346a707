"""`python -m tests.browser.screenshots`: pictures of every page, and those of the README.

Every page of the list in `pages.py`, for a desk and a phone, light and dark. All names, words
and secrets on them are made up here.
"""

import argparse
import io
import os
import sys
import tempfile
from pathlib import Path

import django
from PIL import Image
from rich.console import Console

ROOT = Path(__file__).resolve().parents[2]
README_PICTURES = ROOT / ".github"
MOST_BYTES = 150_000
COLOURS = 0, 256, 192, 128, 96, 64, 48, 32  # 0: all


def main() -> int:
    """Read the arguments, start everything, take the pictures."""
    parser = argparse.ArgumentParser(prog="python -m tests.browser.screenshots")
    parser.add_argument("--out", type=Path, metavar="DIR", help="a folder for all pages")
    parser.add_argument(
        "--readme", action="store_true", help="write the pictures of the README into .github"
    )
    options = parser.parse_args()
    if not (options.out or options.readme):
        parser.error("nothing to do: say --out DIR, --readme or both")
    with tempfile.TemporaryDirectory(prefix="renders-screenshots-") as folder:
        os.environ |= {"DJANGO_SETTINGS_MODULE": "tests.settings", "DJANGO_STATE_DIR": folder}
        django.setup()
        take(Path(folder), options.out, readme=options.readme)
    return 0


def take(folder: Path, out: Path | None, *, readme: bool) -> None:
    """Take all of them into `out`, and with `readme` also some into the repository."""
    # Only now: they need Django's settings.
    from tests.browser.chromium import DESKTOP, SCHEMES, WIDTHS, chromium
    from tests.browser.pages import FLOWERS, SIGHTS, set_scheme, show
    from tests.browser.scene import scene
    from tests.browser.site import FLOWER_PASSWORD, FLOWER_USER, running

    console = Console(highlight=False, soft_wrap=True)
    credentials = {"username": FLOWER_USER, "password": FLOWER_PASSWORD}
    with chromium() as browser, running(folder) as site, scene(site, "ada", "grace") as made:
        for sight in [*SIGHTS, *FLOWERS]:
            if not (out or (readme and sight.picture)):
                continue
            page = browser.new_page(viewport=DESKTOP, http_credentials=credentials)
            show(page, site, made, sight)
            if readme and sight.picture:
                file = README_PICTURES / sight.picture
                file.write_bytes(small(page.screenshot(animations="disabled")))
                console.print(str(file.relative_to(ROOT)))
            for scheme in SCHEMES if out else ():
                set_scheme(page, scheme)
                for name, size in WIDTHS.items():
                    page.set_viewport_size(size)
                    file = out / f"{sight.name}-{name}-{scheme}.png"
                    page.screenshot(path=file, full_page=True, animations="disabled")
                    console.print(str(file))
            page.context.close()


def small(picture: bytes) -> bytes:
    """The same picture in as few bytes as a README should load."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    for colours in COLOURS:
        written = io.BytesIO()
        (reduced(image, colours) if colours else image).save(written, "PNG", optimize=True)
        if written.tell() <= MOST_BYTES:
            return written.getvalue()
    raise ValueError(f"The picture stays above {MOST_BYTES} bytes.")


def reduced(image: Image.Image, colours: int) -> Image.Image:
    """The picture in so many colours: those of whole areas as they are, others mixed of dots."""
    counts = sorted(image.getcolors(image.width * image.height) or [], reverse=True)
    exact = [channel for _, colour in counts[: colours // 4] for channel in colour]
    # Those of small things (a link, a badge) are among the others.
    others = image.quantize(colours - colours // 4, Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette((exact + others)[: 3 * colours])
    return image.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG)


if __name__ == "__main__":
    sys.exit(main())
