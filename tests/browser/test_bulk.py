"""Many at once in the admin: added from a paste, then canceled over all pages of the list."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from renders import services
from renders.models import RenderJob
from tests.browser.pages import ADD_MANY, run_action
from tests.browser.site import Site

# More than one page of the list.
COUNT = 101


@pytest.fixture
def resumed(site: Site) -> Iterator[None]:
    """However the test ends, the others have a gate that is open."""
    yield
    site.database(lambda: services.resume_sending("default"))


@pytest.mark.usefixtures("resumed")
def test_many_are_added_once_and_all_of_the_list_is_canceled(
    site: Site, admins_page: Page, admin
) -> None:
    page = admins_page
    page.goto("/admin/renders/gate/")
    page.get_by_role("button", name="Pause sending").click()
    page.goto(ADD_MANY)
    prompts = "\n".join(f"Stamp number {number}" for number in range(1, COUNT + 1))
    page.get_by_role("textbox", name="Prompts").fill(prompts)
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text(f"{COUNT} renders would be added")).to_be_visible()
    assert site.renders(created_by=admin) == []

    page.get_by_role("button", name=f"Add {COUNT} renders").dblclick()

    expect(page.get_by_text("Stamp number 101").first).to_be_visible()
    assert len(site.renders(created_by=admin)) == COUNT

    page.locator("#action-toggle").check()
    page.get_by_text(f"Select all {COUNT}").click()
    run_action(page, "cancel")

    expect(page.get_by_text(f"Cancel requested for {COUNT};")).to_be_visible()
    page.goto("/admin/renders/gate/")
    page.get_by_role("button", name="Resume").click()
    rows = site.until_handled(created_by=admin)
    # Else every list after this has a hundred rows more.
    site.database(RenderJob.objects.filter(created_by=admin).delete)
    assert {(row.status, row.sume_job_id) for row in rows} == {("canceled", "")}
