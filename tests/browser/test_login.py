"""Who gets in, and who sees what."""

from playwright.sync_api import Page, expect

from tests.browser.site import PASSWORD, Site


def log_in(page: Page, name: str, password: str) -> None:
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def test_the_way_to_a_page_leads_through_the_login(site: Site, page: Page, owner) -> None:
    page.goto("/renders/")
    log_in(page, owner.username, "something else")

    expect(page.get_by_text("correct username and password")).to_be_visible()

    log_in(page, owner.username, PASSWORD)

    expect(page).to_have_url(f"{site.url}/renders/")
    expect(page.get_by_role("heading", name="Renders", exact=True)).to_be_visible()

    page.get_by_role("button", name="Log out").click()

    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_a_stranger_does_not_see_the_render_of_another(site: Site, open_page, owner) -> None:
    render = site.create("A secret garden", owner)
    stranger = open_page(site.new_user())

    response = stranger.goto(f"/renders/{render.pk}/")

    assert response.status == 404
    expect(stranger.get_by_text("A secret garden")).to_have_count(0)
    stranger.goto("/renders/")
    expect(stranger.get_by_text("A secret garden")).to_have_count(0)
