"""One browser and one running site for all tests; pages that notice what goes wrong in them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.chromium import DESKTOP, NoChromium, chromium
from tests.browser.pages import log_in
from tests.browser.site import PATIENCE_SECONDS, Site, running
from tests.browser.watch import Watch

HERE = Path(__file__).parent
REPORTS = pytest.StashKey[list[pytest.TestReport]]()

# A page may be slow where the machine is busy; what is there already is not waited for.
expect.set_options(timeout=PATIENCE_SECONDS * 1000)

OpenPage = Callable[..., Page]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Let the fixture below know that its test has failed."""
    report = yield
    item.stash.setdefault(REPORTS, []).append(report)
    return report


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        with chromium() as browser:
            yield browser
    except NoChromium as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def site(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any
) -> Iterator[Site]:
    """The running system; every test has users of its own in it."""
    with django_db_blocker.unblock(), running(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture
def open_page(
    browser: Browser, site: Site, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[OpenPage]:
    """Gives pages, each in a browser that shares nothing with the others.

    `open_page(user)` is logged in already; further arguments are Playwright's for a context.
    The test fails if anything went wrong in one of them; what a failed test saw is stored.
    """
    watches: list[tuple[BrowserContext, Watch]] = []

    def open_one(user: Any = None, **options: Any) -> Page:
        settings = {"base_url": site.url, "viewport": DESKTOP, "reduced_motion": "reduce"}
        context = browser.new_context(**settings | options)
        watches.append((context, Watch(context)))
        if user is not None:
            log_in(context, site, user)
        return context.new_page()

    yield open_one
    problems = [problem for _, watch in watches for problem in watch.problems]
    seen = ""
    if problems or any(report.failed for report in request.node.stash.get(REPORTS, [])):
        files = [
            file
            for number, (_, watch) in enumerate(watches, start=1)
            for file in watch.dump(tmp_path, f"browser-{number}")
        ]
        seen = "\n".join(map(str, files))
    for context, _ in watches:
        context.close()
    if problems:
        pytest.fail("\n".join([*problems, seen]), pytrace=False)
    elif seen:
        request.node.add_report_section("teardown", "browser", seen)


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    """A page of nobody."""
    return open_page()


@pytest.fixture
def owner(site: Site) -> Any:
    """Somebody who has no render yet."""
    return site.new_user()


@pytest.fixture
def admin(site: Site) -> Any:
    """Somebody who may do everything."""
    return site.new_admin()


@pytest.fixture
def owners_page(open_page: OpenPage, owner: Any) -> Page:
    return open_page(owner)


@pytest.fixture
def admins_page(open_page: OpenPage, admin: Any) -> Page:
    return open_page(admin)
