"""The page of one render: how far it is, its buttons, its copied command."""

import re

from playwright.sync_api import Page, expect

from tests.browser.pages import log_in
from tests.browser.site import Site

PROGRESS = re.compile(r"At Sume for|of usually|longer than usual")


def test_a_running_render_tells_how_far_it_is_and_is_canceled(
    site: Site, owners_page: Page, owner
) -> None:
    page = owners_page
    with site.clock.stopped():
        render = site.create("Too late", owner)
        site.until(lambda: site.renders(pk=render.pk, status="submitted"), "The submit")
        page.goto(f"/renders/{render.pk}/")
        expect(page.locator(".progress")).to_have_text(PROGRESS)

        page.get_by_role("button", name="Cancel").click()

        expect(page.get_by_text("Canceled", exact=True).first).to_be_visible()
        expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
        expect(page.locator(".progress")).to_have_count(0)
    [row] = site.until_handled(pk=render.pk)
    assert row.status == "canceled"
    assert [refund.job_id for refund in site.sandbox.ledger.refunds].count(row.sume_job_id) == 1


def test_a_failed_render_says_why_once_and_is_retried_once(
    site: Site, owners_page: Page, owner
) -> None:
    page = owners_page
    failed = site.create("FAIL:content_policy_rejected", owner)
    site.until_handled(created_by=owner)
    page.goto(f"/renders/{failed.pk}/")
    expect(page.locator("#trouble").get_by_text("content_policy_rejected")).to_have_count(1)

    page.get_by_role("link", name="Retry…").click()
    expect(page.get_by_text("It is billed again.")).to_be_visible()
    page.get_by_role("button", name="Retry as a new render").dblclick()

    expect(page.get_by_text("This is a retry of")).to_be_visible()
    [retry] = site.renders(retry_of=failed)
    assert page.url == f"{site.url}/renders/{retry.pk}/"
    site.until_handled(created_by=owner)


def test_the_command_for_the_api_is_copied(site: Site, open_page, owner) -> None:
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    log_in(page.context, site, owner)
    render = site.create("Copy me", owner)
    page.goto(f"/renders/{render.pk}/")
    page.get_by_text("Ask for the same by the API").click()
    page.get_by_role("button", name="Copy").click()

    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    command = page.evaluate("navigator.clipboard.readText()")
    assert command.startswith("curl -X POST") and "Copy me" in command
    site.until_handled(created_by=owner)
