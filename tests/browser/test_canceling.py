"""The Cancel button of a render's page."""

from playwright.sync_api import Page, expect

from tests.browser.site import Site


def test_a_render_is_canceled_from_its_page(site: Site, owners_page: Page, owner) -> None:
    with site.clock.stopped():
        render = site.create("Too late", owner)
        site.until(lambda: site.renders(pk=render.pk, status="submitted"), "The submit")
        owners_page.goto(f"/renders/{render.pk}/")

        owners_page.get_by_role("button", name="Cancel").click()

        expect(owners_page.get_by_text("Canceled", exact=True).first).to_be_visible()
        expect(owners_page.get_by_role("button", name="Cancel")).to_have_count(0)
    [row] = site.until_handled(pk=render.pk)
    assert row.status == "canceled"
    assert [refund.job_id for refund in site.sandbox.ledger.refunds].count(row.sume_job_id) == 1
