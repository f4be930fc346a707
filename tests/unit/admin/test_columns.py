"""What the list and the page say of a render, in short."""

from datetime import timedelta

import pytest
from django.contrib import admin
from django.utils import timezone

from renders import transitions
from renders.models import RenderJob
from renders.reports import attention
from renders.services import cancel_render, create_render
from renders.states import Status
from renders.templatetags import render_facts as facts

pytestmark = pytest.mark.django_db
SITE = admin.site.get_model_admin(RenderJob)


def shown(column, row):
    fresh = attention.with_reason(RenderJob.objects.filter(pk=row.pk)).get()
    return str(getattr(SITE, column)(fresh))


@pytest.mark.parametrize("status", Status)
def test_each_status_has_a_badge_of_its_own(status):
    row = RenderJob(status=status)
    row.attention = ""

    assert f'<span class="badge badge-{status}">{status.label}</span>' in SITE.badge(row)


def test_a_badge_says_more_where_a_person_should_know(sent):
    row = sent()
    cancel_render(row)
    RenderJob.objects.filter(pk=row.pk).update(failed_reads=9)

    assert [word in shown("badge", row) for word in ("Submitted", "Cancel requested")] == [True] * 2
    assert "Reads keep failing" in shown("badge", row)


def test_one_that_waits_for_the_budget_says_so_and_why_once(admin_client):
    row = create_render("A boat")
    transitions.put_aside([row.pk], "It costs up to $1.20.")

    assert ">Waits for the budget</span>" in shown("badge", row)
    html = admin_client.get(f"/admin/renders/renderjob/{row.pk}/change/").content.decode()
    assert "Waits for the budget: It costs up to $1.20." in html
    assert 'class="renders-trouble"' not in html and "Put aside until the budget has room" in html


def test_a_cancel_is_no_news_once_it_has_ended():
    row = create_render("A boat")
    cancel_render(row)

    assert "Cancel requested" not in shown("badge", row)


def test_a_thumbnail_is_lazy_of_fixed_size_and_has_words(ended):
    row = ended(
        prompt='A "boat"', artifacts=[{"type": "image", "content_type": "image/png", "file": "a"}]
    )
    html = shown("thumbnail", row)

    for part in ('loading="lazy"', 'width="64"', 'height="48"', 'alt="A &quot;boat&quot;"'):
        assert part in html


def test_without_a_picture_there_is_a_word(sent):
    assert shown("thumbnail", sent(kind="avatar", params={"avatar_handle": "mara"})).endswith(
        ">Avatar</span>"
    )


@pytest.mark.parametrize(
    ("sent_after", "ended_after", "waited", "rendered"),
    [
        (None, None, "10 min", "-"),
        (None, 60, "1 min", "-"),
        (120, None, "2 min", "8 min"),
        (5, 65, "5 s", "1 min"),
    ],
)
def test_times_are_counted_to_the_next_step_or_to_now(
    monkeypatch, sent_after, ended_after, waited, rendered
):
    made = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: made + timedelta(minutes=10))
    after = [
        None if seconds is None else made + timedelta(seconds=seconds)
        for seconds in (sent_after, ended_after)
    ]
    row = RenderJob(created_at=made, submitted_at=after[0], finished_at=after[1])

    assert (facts.waited(row), facts.rendered(row)) == (waited, rendered)
    assert ("render" in SITE.times(row)) == (sent_after is not None)


def test_a_name_is_text_and_leads_to_the_renders_of_that_person(django_user_model):
    user = django_user_model.objects.create_user("<b>ann")

    html = shown("added", create_render("A boat", user=user))
    assert f'<a href="?who={user.pk}">&lt;b&gt;ann</a>' in html
    assert "by a program" in shown("added", create_render("A boat"))


def test_every_line_of_a_timeline_has_a_title():
    for word in ("sume status", "late answer", "media not stored"):
        assert facts.event_title(word) != word.capitalize()


def test_an_error_has_its_code_unless_its_message_is_the_code():
    told = [SITE.trouble(RenderJob(error_code="bad", error_message=m)) for m in ("Odd.", "bad")]

    assert ["<code>bad</code>" in html for html in told] == [True, False]
    assert "<p>bad</p>" in told[1]
