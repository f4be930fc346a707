"""The browser: this machine's own Chromium, driven by Playwright, which brings none."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, ViewportSize, sync_playwright

NAMES = "chromium", "chromium-browser", "google-chrome"
DESKTOP = ViewportSize(width=1280, height=900)
PHONE = ViewportSize(width=390, height=844)
WIDTHS = {"desktop": DESKTOP, "phone": PHONE}
SCHEMES = "light", "dark"


class NoChromium(Exception):
    """No browser is installed."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running browser that reaches nothing but this machine. Raises `NoChromium`."""
    binary = next(filter(None, map(shutil.which, NAMES)), None)
    if binary is None:
        raise NoChromium("No Chromium: apt-get install chromium (or have Google Chrome on PATH).")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=binary,
            # Chromium's own sandbox does not work for root.
            chromium_sandbox=os.geteuid() != 0,
            args=["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
        )
        try:
            yield browser
        finally:
            browser.close()
