"""The pages of these tests notice what goes wrong in them."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.site import Site
from tests.browser.watch import Watch


@pytest.fixture
def unwatched(browser: Browser) -> Iterator[Page]:
    """A page whose problems fail no test."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("console.error('torn')", "console: torn"),
        ("setTimeout(() => { throw new Error('torn') })", "uncaught: torn"),
        ("fetch('/static/nothing.js')", "404 for "),
        ("fetch('https://example.com/').catch(() => null)", "net::ERR_NAME_NOT_RESOLVED for "),
    ],
    ids=["console", "exception", "missing file", "other machine"],
)
def test_a_problem_is_noticed(site: Site, unwatched: Page, script: str, problem: str) -> None:
    watch = Watch(unwatched.context)
    unwatched.goto(f"{site.url}/admin/login/")  # no policy of its own forbids the request before
    assert watch.problems == []

    unwatched.evaluate(f"{{ {script} }}")
    site.until(lambda: unwatched.evaluate("1") and watch.problems, "A problem")

    assert watch.problems[0].startswith(problem)


def test_a_page_that_is_not_there_is_no_problem(site: Site, unwatched: Page) -> None:
    watch = Watch(unwatched.context)

    assert unwatched.goto(f"{site.url}/accounts/nothing/").status == 404
    assert watch.problems == []
