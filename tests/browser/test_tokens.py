"""A token for the API is shown once, opens the API, and once it is revoked opens nothing."""

from playwright.sync_api import Page, expect

from tests.browser.pages import TOKENS, make_token
from tests.browser.site import Site


def test_a_token_is_shown_once_and_works_until_it_is_revoked(
    site: Site, admins_page: Page, page: Page
) -> None:
    admins_page.goto(f"{TOKENS}add/")
    make_token(admins_page, "Night shift")
    shown = admins_page.get_by_role("textbox", name="Token")
    expect(shown).to_be_focused()
    token = shown.input_value()

    def ask() -> int:
        headers = {"Authorization": f"Bearer {token}"}
        return page.request.get("/api/renders/", headers=headers).status

    assert ask() == 200
    admins_page.get_by_role("link", name="I have copied it").click()
    row = admins_page.get_by_role("row").filter(has_text="Night shift")
    expect(row).to_be_visible()
    assert token not in admins_page.content()
    row.get_by_role("link", name="Night shift").click()
    assert token not in admins_page.content()
    admins_page.get_by_role("button", name="Revoke this token").click()
    expect(admins_page.get_by_text("1 revoked.")).to_be_visible()
    assert ask() == 401
