"""The gallery shows a person's own renders, by filter and page, and keeps itself new."""

import json
import re
from datetime import timedelta
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from django.urls import reverse
from django.utils import timezone

from renders import transitions
from renders.limits import spending
from renders.models import RenderJob
from renders.services import create_render
from renders.states import Status
from tests.unit.views.support import SIGNED, ended, picture, submitted

pytestmark = pytest.mark.django_db
GALLERY = "/renders/"


def poller_of(html):
    """What the page would ask next: address, headers, values, whether by itself."""
    tag = re.search(r'<div id="live"[^>]*>', html).group()
    found = {name: unescape(value) for name, value in re.findall(r'([a-z-]+)="([^"]*)"', tag)}
    return {
        "url": found["hx-get"],
        "headers": json.loads(found["hx-headers"]),
        "values": json.loads(found["hx-vals"]),
        "again": "every 3s" in found["hx-trigger"],
    }


def poll(client, page):
    """Ask as htmx does, from what the page or an earlier reply holds."""
    asked = poller_of(page.text)
    url = urlsplit(asked["url"])
    data = parse_qs(url.query) | asked["values"]
    return client.get(url.path, data, headers=asked["headers"])


def prompts(response):
    return re.findall(r'<h3><a href="[^"]*" dir="auto">([^<]*)</a></h3>', response.text)


# --- Who sees what ------------------------------------------------------------------------


def test_the_start_page_leads_to_the_gallery(page):
    assert page.get("/").headers["Location"] == GALLERY


@pytest.mark.parametrize("path", ["", "new/", "charts/", "{pk}/", "{pk}/artifacts/0/"])
def test_strangers_are_asked_to_log_in(client, ann, path):
    row = ended(ann, artifacts=[picture()])
    response = client.get(GALLERY + path.format(pk=row.pk))

    assert response.headers["Location"].startswith(reverse("login"))


def test_a_person_sees_own_renders_only(page, ann, bob):
    create_render("Ann's boat", user=ann)
    create_render("Bob's secret", user=bob)

    for response in (page.get(GALLERY), page.get(GALLERY + "live/?shown=x~y")):
        assert "Ann&#x27;s boat" in response.text
        assert "Bob" not in response.text


def test_staff_with_the_permission_see_all_or_their_own(client, staff, bob):
    create_render("Bob's boat", user=bob)
    client.force_login(staff)

    assert prompts(client.get(GALLERY)) == ["Bob&#x27;s boat"]
    assert prompts(client.get(GALLERY + "?whose=mine")) == []


def test_only_who_sees_all_is_asked_whose(page, bob):
    create_render("Bob's boat", user=bob)

    assert "whose" not in page.get(GALLERY + "?status=open").text


def test_nothing_but_scripts_of_this_site_run_on_pages(page, ann):
    row = create_render("A boat", user=ann)
    for path in ("", "new/", "charts/", f"{row.pk}/"):
        response = page.get(GALLERY + path)
        assert "script-src 'self';" in response.headers["Content-Security-Policy"]
        assert all(" src=" in tag for tag in re.findall("<script[^>]*>", response.text))
        assert not re.search(r' (on[a-z]+|hx-on[^=]*)="', response.text)


@pytest.mark.parametrize(
    ("path", "name"), [("", "Gallery"), ("new/", "New"), ("charts/", "Charts")]
)
def test_the_page_that_is_shown_is_marked_in_the_navigation(page, path, name):
    html = page.get(GALLERY + path).text

    assert re.findall(r'aria-current="page">([^<]*)<', html) == [name]
    assert "Admin" not in html


# --- Budgets ------------------------------------------------------------------------------


@pytest.fixture
def budgets(settings):
    spending.forget()
    settings.RENDERS = {**settings.RENDERS, "BUDGET_USD": 10, "USER_BUDGET_USD": 0.5}
    settings.RENDERS["PRICES"] = "image:sume/auto=0.09"
    yield
    spending.forget()


def test_without_a_budget_nothing_is_said_of_one(page):
    assert '<p class="budget hint" id="budget"></p>' in page.get(GALLERY).text


def test_a_person_reads_what_is_left(page, budgets, ann):
    ended(ann, cost=360_000)

    html = page.get(GALLERY).text
    assert "<span>$0.14 of your $0.50 is left this month.</span>" in html
    assert "shared" not in html


def test_who_sees_all_reads_of_the_shared_budget_as_well(client, budgets, staff, ann):
    ended(ann, cost=9_000_000)
    client.force_login(staff)

    html = client.get(GALLERY).text
    assert "<span>$0.50 of your $0.50 is left this month.</span>" in html
    assert '<span class="low">$1.00 of the shared $10.00 is left this month. Renders' in html


def test_the_line_follows_what_is_spent(page, budgets, ann):
    shown = page.get(GALLERY)
    ended(ann, cost=360_000)
    spending.forget()

    assert "$0.14 of your $0.50" in poll(page, shown).text


def test_a_card_says_why_its_render_waits(page, ann):
    row = create_render("A boat", user=ann)
    transitions.put_aside([row.pk], "It costs up to $1.20, but $0.30 is left.")

    html = page.get(GALLERY).text
    assert '<p class="words">Waits for the budget: It costs up to $1.20, but $0.30 is left.' in html


# --- Filters and pages --------------------------------------------------------------------


def test_an_empty_gallery_says_how_to_begin(page):
    html = page.get(GALLERY).text

    assert "Nothing here yet" in html
    assert 'href="/renders/new/"' in html


def test_filters_that_match_nothing_can_be_cleared(page, ann):
    create_render("A boat", user=ann)
    html = page.get(GALLERY + "?q=whale").text

    assert "Nothing matches" in html and "Clear the filters" in html
    assert "0 found" in html
    assert 'value="whale"' in html


def test_pages_keep_the_filters_and_do_not_move_when_renders_are_added(page, ann):
    for number in range(50):
        create_render(f"Boat {number}", user=ann)
    first = page.get(GALLERY + "?q=boat&kind=image")
    [older] = re.findall(r'rel="next" href="([^"]*)"', first.text)
    second = page.get(unescape(older))
    create_render("Boat, newer", user=ann)

    assert "q=boat&amp;kind=image&amp;before=" in older
    assert prompts(first) == [f"Boat {number}" for number in range(49, 25, -1)]
    assert prompts(page.get(unescape(older))) == prompts(second)
    assert prompts(second)[0] == "Boat 25"
    [newer] = re.findall(r'rel="prev" href="([^"]*)"', second.text)
    assert prompts(page.get(unescape(newer)))[-1] == "Boat 26"


def test_a_wrong_filter_says_so_and_filters_nothing(page, ann):
    create_render("A boat", user=ann)
    response = page.get(GALLERY + "?status=lost&since=yesterday&before=never&after=x.y")

    assert prompts(response) == ["A boat"]
    assert "lost is not one of the available choices" in response.text
    assert "Enter a valid date" in response.text


def test_the_number_of_queries_does_not_grow_with_the_renders(
    client, staff, ann, django_assert_max_num_queries
):
    client.force_login(staff)
    for number in range(20):
        ended(ann, prompt=f"Boat {number}", artifacts=[picture()])
    with django_assert_max_num_queries(6):
        client.get(GALLERY)


# --- Keeping itself new -------------------------------------------------------------------


def test_the_gallery_asks_again_by_itself_only_while_something_runs(page, ann):
    ended(ann, artifacts=[picture()])
    assert not poller_of(page.get(GALLERY).text)["again"]

    create_render("Running", user=ann)
    first = page.get(GALLERY)
    assert poller_of(first.text)["again"]
    assert "Show what is new" in first.text
    assert "http-equiv" not in first.text


def test_a_render_that_was_never_handled_is_not_asked_for_for_ever(page, ann):
    row = submitted(ann)
    long_ago = timezone.now() - timedelta(hours=1)
    transitions.end(row.pk, 0, long_ago, Status.COMPLETED, sume_status="completed")

    assert not poller_of(page.get(GALLERY).text)["again"]


def test_nothing_new_is_304_for_two_queries(page, ann, django_assert_num_queries):
    for number in range(5):
        submitted(ann, f"Boat {number}")
    first = page.get(GALLERY)
    with django_assert_num_queries(4):  # session and user; rows and their number
        response = poll(page, first)

    assert response.status_code == 304
    assert response.content == b""


def test_what_changed_is_sent_alone_and_told_once(page, ann):
    create_render("Still waiting", user=ann)
    row = create_render("A boat", user=ann)
    first = page.get(GALLERY)
    transitions.cancel_unsent(row.pk, timezone.now())
    response = poll(page, first)
    name = row.pk.hex[:8]

    changed = re.findall('hx-swap-oob="([^"]*)"', response.text)
    assert changed == [f"innerHTML:#frame-{name}", f"innerHTML:#facts-{name}", "innerHTML:#news"]
    assert "A boat: canceled.</div>" in response.text
    assert "Still waiting" not in response.text
    assert poll(page, response).status_code == 304


def test_a_minute_more_changes_the_age_and_is_not_told(page, ann):
    row = create_render("A boat", user=ann)
    first = page.get(GALLERY)
    RenderJob.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(minutes=5))
    response = poll(page, first)

    assert "5 min ago" in response.text
    assert "#news" not in response.text and "#frame" not in response.text


def test_cards_come_and_go_where_they_belong(page, ann):
    oldest = create_render("Oldest", user=ann)
    create_render("Newest", user=ann)
    first = page.get(GALLERY + "?status=pending")
    create_render("Added", user=ann)
    transitions.cancel_unsent(oldest.pk, timezone.now())
    response = poll(page, first)

    assert prompts(response) == ["Added"]
    assert re.findall('hx-swap-oob="([^"]*)"', response.text) == [
        f"delete:#card-{oldest.pk.hex[:8]}",
        "afterbegin:#cards",
        "innerHTML:#news",
    ]
    assert "Added: pending." in response.text


def test_a_card_in_the_middle_follows_its_neighbour(page, ann):
    first_row, middle, last = (create_render(name, user=ann) for name in ("1", "2", "3"))
    transitions.cancel_unsent(first_row.pk, timezone.now())
    transitions.cancel_unsent(last.pk, timezone.now())
    first = page.get(GALLERY + "?status=canceled")
    transitions.cancel_unsent(middle.pk, timezone.now())

    assert f'hx-swap-oob="afterend:#card-{last.pk.hex[:8]}"' in poll(page, first).text


def test_many_news_are_told_in_short(page, ann):
    first = page.get(GALLERY)
    for number in range(5):
        create_render(f"Boat {number}", user=ann)

    assert "Boat 2: pending. And 2 more.</div>" in poll(page, first).text


def test_the_first_render_replaces_the_words_for_none(page, ann):
    first = page.get(GALLERY)
    create_render("A boat", user=ann)
    response = poll(page, first)

    assert 'hx-swap-oob="innerHTML:#empty"></div>' in response.text
    assert poller_of(response.text)["again"]


def test_whoever_was_logged_out_keeps_the_page_and_reads_why(page, ann):
    create_render("A boat", user=ann)
    first = page.get(GALLERY)
    page.logout()
    response = poll(page, first)

    assert response.status_code == 200
    assert "You were logged out" in response.text
    assert "hx-get" not in response.text and "boat" not in response.text


@pytest.mark.parametrize("shown", ["", "~", "card-x~y", "card-1,body~x", "%00", "a~b" * 999])
def test_versions_that_no_page_sent_do_no_harm(page, ann, shown):
    create_render("A boat", user=ann)
    response = page.get(GALLERY + "live/", {"shown": shown})

    assert response.status_code == 200
    assert "delete:" not in response.text


# --- What pages show ----------------------------------------------------------------------


@pytest.mark.parametrize("path", [GALLERY, "detail"])
def test_a_prompt_is_text_and_never_markup(page, ann, path):
    row = ended(ann, Status.FAILED, prompt="<script>x</script>", code="<b>", message="<i>why</i>")
    html = page.get(row.get_absolute_url() if path == "detail" else path).text

    assert "<script>" not in html
    assert "<i>why" not in html and "<b>" not in html
    assert "&lt;script&gt;x" in html


@pytest.mark.parametrize("path", [GALLERY, "detail"])
def test_pages_show_media_by_own_addresses_and_no_signed_one(page, ann, path):
    clip = {"type": "video", "content_type": "video/mp4", "url": SIGNED}
    rows = [
        ended(ann, artifacts=[picture()]),
        ended(ann, artifacts=[clip]),
        ended(ann, artifacts=[picture(content_type="image/gif")]),
    ]
    for row, tag in zip(rows, ["<img", "<video", "<img"], strict=True):
        html = page.get(row.get_absolute_url() if path == "detail" else path).text
        assert f'{tag} src="/renders/{row.pk}/artifacts/0/"' in html
        assert "hush" not in html and "media.example" not in html
