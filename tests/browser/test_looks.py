"""Every page fits a phone and a desk, in light and dark, and axe finds nothing serious in it."""

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.chromium import WIDTHS
from tests.browser.pages import SIGHTS, Sight, set_scheme, show
from tests.browser.scene import Scene, scene
from tests.browser.site import Site

GRAVE = {"serious", "critical"}


@pytest.fixture(scope="module")
def scenery(site: Site) -> Iterator[Scene]:
    with scene(site) as made:
        yield made


def wider_by(page: Page, width: str) -> int:
    """How many pixels of it lie beyond the right edge of a phone or desk."""
    page.set_viewport_size(WIDTHS[width])
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def findings(page: Page, sight: Sight, *only: str) -> list[str]:
    """What axe calls serious or critical, a line for each element; by these rules alone, or all."""
    context = {"exclude": [sight.others]} if sight.others else None
    options: dict[str, Any] = {
        "resultTypes": ["violations"],
        # It would look for imported style sheets in the wrong folder.
        "preload": False,
    }
    if only:
        options["runOnly"] = list(only)
    violations = Axe().run(page, context=context, options=options).response["violations"]
    return [
        f"{violation['id']}: {' '.join(map(str, node['target']))}: {node.get('failureSummary')}"
        for violation in violations
        if violation["impact"] in GRAVE
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("sight", SIGHTS, ids=lambda sight: sight.name)
def test_all_can_use_it_and_nothing_hangs_out_at_the_side(
    site: Site, scenery: Scene, page: Page, sight: Sight
) -> None:
    show(page, site, scenery, sight)

    assert {name: by for name in WIDTHS if (by := wider_by(page, name)) > 0} == {}
    assert findings(page, sight) == []
    set_scheme(page, "dark")
    assert findings(page, sight, "color-contrast") == []
