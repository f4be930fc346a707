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
