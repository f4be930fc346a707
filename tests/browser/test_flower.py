"""Flower lets nobody in without the password."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import FLOWER_PASSWORD, FLOWER_USER, WORKER, Site


@pytest.mark.parametrize("path", ["/", "/workers", "/tasks", "/api/workers"])
def test_without_a_password_nothing_is_shown(site: Site, page: Page, path: str) -> None:
    answer = page.request.get(site.flower_url + path)

    assert answer.status == 401
    assert WORKER not in answer.text()


def test_a_wrong_password_is_refused(site: Site, open_page) -> None:
    credentials = {"username": FLOWER_USER, "password": "a wrong one"}
    page = open_page(base_url=site.flower_url, http_credentials=credentials)

    assert page.goto("/").status == 401


def test_the_right_password_shows_the_worker(site: Site, open_page) -> None:
    credentials = {"username": FLOWER_USER, "password": FLOWER_PASSWORD}
    page = open_page(base_url=site.flower_url, http_credentials=credentials)

    assert page.goto("/").status == 200
    expect(page.get_by_text(WORKER).first).to_be_visible()


def test_the_way_leads_from_a_render_to_its_tasks_and_back(site: Site, open_page, admin) -> None:
    credentials = {"username": FLOWER_USER, "password": FLOWER_PASSWORD}
    page = open_page(admin, http_credentials=credentials)
    render = site.create("A link in Flower", admin)
    site.until_handled(created_by=admin)
    page.goto(f"/admin/renders/renderjob/{render.pk}/change/")

    page.get_by_role("link", name="Tasks in Flower").click()
    page.get_by_role("link", name=f"Render {str(render.pk)[:8]}").first.click()

    expect(page).to_have_url(f"{site.url}/renders/{render.pk}/")
    expect(page.get_by_role("heading", name="A link in Flower")).to_be_visible()
