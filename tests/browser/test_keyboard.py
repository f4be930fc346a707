"""Everything without a mouse."""

from playwright.sync_api import Page, expect

from tests.browser.pages import FORM
from tests.browser.site import Site

MOST_STOPS = 25


def focused(page: Page) -> str:
    """The words on what has the focus."""
    return str(page.evaluate("document.activeElement.innerText || ''")).strip()


def tab_to(page: Page, words: str) -> None:
    """Press the key until these words have the focus."""
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        if words in focused(page):
            return
    raise AssertionError(f"{words!r} is not reached within {MOST_STOPS} stops.")


def test_the_first_stop_leads_past_what_all_pages_share(
    site: Site, owners_page: Page, owner
) -> None:
    site.create("A boat by keyboard", owner)
    site.until_handled(created_by=owner)
    owners_page.goto("/renders/")

    owners_page.keyboard.press("Tab")
    skip = owners_page.get_by_role("link", name="Skip")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    owners_page.keyboard.press("Enter")
    owners_page.keyboard.press("Tab")

    assert owners_page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_the_gallery_leads_to_a_render(site: Site, owners_page: Page, owner) -> None:
    render = site.create("A boat by keyboard", owner)
    site.until_handled(created_by=owner)
    owners_page.goto("/renders/")

    tab_to(owners_page, "A boat by keyboard")
    owners_page.keyboard.press("Enter")

    expect(owners_page).to_have_url(f"{site.url}/renders/{render.pk}/")
    expect(owners_page.get_by_role("heading", name="A boat by keyboard")).to_be_visible()


def test_a_render_is_added_with_keys_alone(site: Site, owners_page: Page, owner) -> None:
    owners_page.goto(FORM)
    prompt = owners_page.get_by_role("textbox", name="Prompt")
    for _ in range(MOST_STOPS):
        owners_page.keyboard.press("Tab")
        if prompt.evaluate("field => field === document.activeElement"):
            break
    owners_page.keyboard.type("Typed, not clicked")
    tab_to(owners_page, "Render")
    owners_page.keyboard.press("Enter")

    expect(owners_page.get_by_text("Typed, not clicked").first).to_be_visible()
    assert len(site.renders(created_by=owner)) == 1
