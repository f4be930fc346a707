"""Takes README's picture of Flower: `python -m tests.flower_picture` (needs Chromium)."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / ".github/flower.png"
PROMPTS = ["A boat in a bottle", "A red fox", "FAIL on purpose"]


def take(address: str, password: str, picture: Path, folder: str) -> None:
    """What a browser shows of Flower's tasks, in few colours."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is needed, and is not on PATH.")
    where = address.replace("//", f"//admin:{password}@").rstrip("/") + "/tasks"
    subprocess.run(
        [
            chromium,
            *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *(f"--user-data-dir={folder}", "--window-size=1280,800"),
            *("--virtual-time-budget=6000", f"--screenshot={picture}", where),
        ],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    with Image.open(picture) as full:
        full.convert("RGB").quantize(64).save(picture, optimize=True)


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [sys.executable, ROOT / "manage.py", "demo", *PROMPTS],
            env={**os.environ, "RENDERS_SWEEP_SECONDS": "30"},
            stdout=subprocess.PIPE,
            text=True,
        ) as demo,
    ):
        assert demo.stdout
        said = ""
        for line in demo.stdout:
            said += line
            if line.startswith("Ctrl-C"):
                break
        if found := re.search(r"^Flower +(\S+) .*password (\S+)$", said, re.MULTILINE):
            take(found[1], found[2], PICTURE, folder)
        demo.send_signal(signal.SIGINT)
    sys.exit(0 if found else f"The demo did not start:\n{said}")


if __name__ == "__main__":
    main()
