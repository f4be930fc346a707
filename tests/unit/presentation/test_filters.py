"""Filters find what they say, and stay in the address."""

from datetime import UTC, datetime, timedelta

import pytest
from django.http import QueryDict
from django.utils import timezone

from renders import transitions
from renders.models import RenderJob
from renders.presentation.filters import FilterForm
from renders.services import cancel_render, create_render

pytestmark = pytest.mark.django_db


def found(user, query):
    rows = FilterForm(QueryDict(query), user=user).apply(RenderJob.objects.all())
    return sorted(row.prompt for row in rows)


def submitted(row, moment):
    transitions.claim(row.pk, moment, "default")
    transitions.record_submitted(
        row.pk, moment, job_id="j", sume_status="", hit=False, next_poll_at=moment
    )


@pytest.mark.parametrize(
    ("query", "prompts"),
    [
        ("", ["A boat", "A late boat", "A whale"]),
        ("q=WHALE", ["A whale"]),
        ("q=100%25", []),
        ("status=open", ["A boat", "A late boat"]),
        ("status=canceled", ["A whale"]),
        ("status=overdue", ["A late boat"]),
        ("kind=video", ["A whale"]),
        ("kind=video&q=boat", []),
        ("since=2026-03-02&until=2026-03-02", ["A whale"]),
        ("until=2026-03-01", ["A boat"]),
        ("until=0001-01-01", ["A boat", "A late boat", "A whale"]),
        ("until=9999-12-31", ["A boat", "A late boat", "A whale"]),
        ("whose=mine", ["A boat", "A late boat", "A whale"]),
        ("q=%00", ["A boat", "A late boat", "A whale"]),
    ],
)
def test_each_filter(ann, query, prompts):
    rows = [
        create_render("A boat"),
        create_render("A whale", kind="video"),
        create_render("A late boat"),
    ]
    cancel_render(rows[1])
    submitted(rows[2], timezone.now() - timedelta(days=2))
    for day, row in enumerate(rows, start=1):
        moment = datetime(2026, 3, day, 23, 30, tzinfo=UTC)
        RenderJob.objects.filter(pk=row.pk).update(created_at=moment)

    assert found(ann, query) == prompts


def test_those_who_see_all_choose_among_several_workspaces(django_user_model, ann, settings):
    root = django_user_model.objects.create_superuser("root")
    assert "workspace" not in FilterForm(QueryDict(""), user=root).fields
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": {}}}
    create_render("A boat", workspace="acme")
    create_render("A whale", user=ann)

    assert found(root, "workspace=acme") == ["A boat"]
    assert found(root, "workspace=default") == ["A whale"]
    assert found(root, "workspace=nobody") == ["A boat", "A whale"]
    assert found(ann, "workspace=acme") == ["A boat", "A whale"]  # none of theirs is looked for


def test_days_begin_where_the_reader_is(ann):
    row = create_render("A boat")
    moment = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    RenderJob.objects.filter(pk=row.pk).update(created_at=moment)
    with timezone.override("Europe/Berlin"):
        assert found(ann, "since=2026-03-02") == ["A boat"]


def test_the_address_holds_the_filters_and_nothing_else(ann):
    form = FilterForm(QueryDict("q=a+b%26&kind=&page=3&shown=x&before=z"), user=ann)

    assert form.query(before="m") == "?q=a+b%26&before=m"
    assert FilterForm(QueryDict(""), user=ann).query() == ""


def test_held_ones_can_be_found(ann):
    row, _ = create_render("A boat"), create_render("A whale")
    transitions.hold_many([row.pk], timezone.now())

    assert found(ann, "status=held") == ["A boat"]
