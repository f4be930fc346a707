"""Pages keep themselves new, without a reload, and ask no more than they must."""

import re

from playwright.sync_api import Page, Response, expect

from tests.browser.site import Site


def live_replies(page: Page) -> list[Response]:
    """What the page is answered from now on when it asks for what is new."""
    replies: list[Response] = []
    page.on("response", lambda reply: replies.append(reply) if "/live/" in reply.url else None)
    return replies


def wait_for_reply(page: Page, status: int) -> None:
    """Until it asks and is answered so."""
    with page.expect_response(lambda reply: "/live/" in reply.url and reply.status == status):
        pass


def test_a_card_becomes_the_picture_under_the_hands_of_a_person(
    site: Site, owners_page: Page, owner
) -> None:
    page = owners_page
    with site.clock.stopped():
        render = site.create("A kite that grows", owner)
        site.until(lambda: site.renders(pk=render.pk, sume_status="queued"), "The submit")
        page.goto("/renders/")
        page.evaluate("window.same = true")
        card = page.get_by_role("listitem").filter(has_text="A kite that grows")
        expect(card.get_by_text("Submitted", exact=True)).to_be_visible()
        expect(card.locator("img")).to_have_count(0)
        search = page.get_by_role("searchbox", name="Prompt contains")
        search.press_sequentially("half a wo")
        wait_for_reply(page, 304)  # nothing is new, so nothing is sent

    expect(card.get_by_text("Completed", exact=True)).to_be_visible()
    expect(card.locator("img")).not_to_have_js_property("naturalWidth", 0)
    expect(search).to_be_focused()
    expect(search).to_have_value("half a wo")
    assert page.evaluate("window.same")
    # It asks no more, until somebody looks at it again.
    expect(page.locator("#live")).to_have_attribute("hx-trigger", re.compile("^visibilitychange"))


def test_a_page_on_which_nothing_runs_asks_for_nothing(
    site: Site, owners_page: Page, owner
) -> None:
    render = site.create("A kite at rest", owner)
    site.until_handled(created_by=owner)
    owners_page.clock.install()
    replies = live_replies(owners_page)
    for path in ("/renders/", f"/renders/{render.pk}/"):
        owners_page.goto(path)
        owners_page.clock.fast_forward("05:00")
    owners_page.evaluate("fetch('/healthz')")  # a round trip: what was asked is answered

    assert replies == []
