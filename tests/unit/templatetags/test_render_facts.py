"""Times, cost and standing in short words."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils import timezone

from renders.models import RenderJob
from renders.states import Status
from renders.templatetags.render_facts import ago, exact, in_words, seconds_in_words, short, usd


@pytest.mark.parametrize("status", Status.values)
def test_every_status_has_a_badge_with_a_colour_and_a_sentence(status):
    row = RenderJob(prompt="A boat", status=status)
    badge = render_to_string("renders/parts/badge.html", {"render": row})
    css = Path(finders.find("renders/badge.css")).read_text()

    assert f'badge-{status}">{row.get_status_display()}<' in badge
    assert f".badge-{status} {{" in css
    assert in_words(row).endswith(".")


def test_a_cancel_that_came_too_late_is_told():
    row = RenderJob(status=Status.COMPLETED, result={"artifacts": [{"type": "image"}]})
    assert in_words(row) == "It is ready."

    row.cancel_requested_at = timezone.now()

    assert in_words(row) == "It is ready; the cancel came too late."


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0 s"), (0, "0 s"), (59.9, "59 s"), (60, "1 min"), (7200, "2 h"), (200_000, "2 d")],
)
def test_spans_are_short(seconds, words):
    assert short(timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(
    ("micros", "words"),
    [(None, "-"), (0, "$0.00"), (40_000, "$0.04"), (1_234_567, "$1.234567"), (5_500_000, "$5.50")],
)
def test_costs_are_exact(micros, words):
    assert usd(micros) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0 s"),
        (0, "0 s"),
        (9.9, "9 s"),
        (95, "1 min 35 s"),
        (3600, "1 h"),
        (3605, "1 h"),
        (90_000, "1 d 1 h"),
    ],
)
def test_exact_spans_have_two_units(seconds, words):
    assert exact(timedelta(seconds=seconds)) == words


def test_short_times_keep_their_fraction():
    assert seconds_in_words(0.25) == "0.2 s"
    assert seconds_in_words(3.0) == "3 s"


def test_what_was_just_added_does_not_age_by_the_second():
    now = timezone.now()

    assert ago(now - timedelta(seconds=59)) == "just now"
    assert ago(now - timedelta(seconds=61)) == "1 min ago"
