"""With very many renders: what is asked all the time is found by indexes, and reads few rows."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from renders import (
    announcements,
    attention,
    batches,
    checking,
    claims,
    erasing,
    loads,
    measuring,
    removal,
    services,
    standing,
    sweep,
    waiting_limit,
    workspaces,
)
from renders.conf import conf
from renders.health import work
from renders.models import RenderJob
from renders.paging import mark
from renders.progress import progress_of
from renders.pruning import Pruning
from renders.retention import Ages, walk
from renders.states import Status
from tests.benchmarks.filling import Filling, fill
from tests.integration.conftest import Databases, using_database

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("redis"),
]

THOROUGH = pytest.mark.thorough
TABLES = {"renders_renderjob", "renders_renderevent"}
# What waits and runs are 10,000 rows; no statement may read much more of all.
MOST_READ = 30_000


# Each process fills a database of its own: `--dist loadscope` has one do it.
@pytest.fixture(scope="module", params=[250_000, pytest.param(1_000_000, marks=THOROUGH)])
def many(
    request: pytest.FixtureRequest, databases: Databases, django_db_blocker: Any
) -> Iterator[None]:
    with django_db_blocker.unblock():
        url = databases.fresh("postgresql")
        fill(url, Filling(rows=request.param))
        with using_database(url):
            yield
        databases.drop(url)


@pytest.fixture(autouse=True)
def undone(many: None, django_db_blocker: Any) -> Iterator[None]:
    """Whatever a test writes is rolled back."""
    cache.clear()
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


class Plan:
    """One statement as it was carried out: EXPLAIN ANALYZE."""

    def __init__(self, sql: str, params: Any) -> None:
        self.sql = sql
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params)
            found = cursor.fetchone()[0]
            transaction.set_rollback(True)
        self.root = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]

    def nodes(self) -> Iterator[dict[str, Any]]:
        todo = [self.root]
        while todo:
            node = todo.pop()
            todo += node.get("Plans", [])
            yield node

    def scanned(self) -> list[str]:
        """Which of the large tables it reads from the first row to the last."""
        return [
            node["Relation Name"]
            for node in self.nodes()
            if node["Node Type"] == "Seq Scan" and node["Relation Name"] in TABLES
        ]

    def rows_read(self) -> float:
        return sum(
            node["Actual Loops"]
            * (
                node["Actual Rows"]
                + node.get("Rows Removed by Filter", 0)
                + node.get("Rows Removed by Index Recheck", 0)
            )
            for node in self.nodes()
            if node.get("Relation Name") in TABLES and "Scan" in node["Node Type"]
        )


@contextmanager
def plans_of_all() -> Iterator[list[Plan]]:
    """The plans of all statements meanwhile that read one of the large tables."""
    plans: list[Plan] = []
    explaining = False

    def explained(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal explaining
        asks = sql.startswith(("SELECT", "WITH", "UPDATE", "DELETE"))
        if asks and not explaining and any(table in sql for table in TABLES):
            explaining = True
            plans.append(Plan(sql, params))
            explaining = False
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explained):
        yield plans


def assert_by_index(plans: list[Plan], most: float = MOST_READ) -> None:
    assert plans
    for plan in plans:
        assert not plan.scanned(), plan.sql
        assert plan.rows_read() <= most, (plan.rows_read(), plan.sql)


# --- What workers ask -----------------------------------------------------------------------


def asked_again(row):
    names = ("prompt", "kind", "model", "params", "reference")
    return services.create_render(
        user=row.created_by, **{name: getattr(row, name) for name in names}
    )


def count_waiting(user: Any) -> None:
    waiting_limit.check(user, 1)


def some(**which: Any) -> Any:
    """One of the newest of that sort."""
    return RenderJob.objects.filter(**which)[9:10].get()


def claim(limit: int) -> None:
    named = some(status=Status.PENDING)
    assert claims.claim(named.pk, limit).renders


def a_poll_is_noted() -> None:
    row = some(status=Status.SUBMITTED)
    now = timezone.now()
    assert RenderJob.objects.record_read(row.pk, row.poll_count, now, next_poll_at=now)


def an_event_comes() -> None:
    announcements.take(
        "default", "event-1", type="job.completed", job_id=some(status="submitted").sume_job_id
    )


def prune(**days: int) -> None:
    assert Pruning(Ages(**days), batch=conf.SWEEP_BATCH, stop=lambda: True).run().rows


def erase_some() -> None:
    theirs = erasing.to_erase(some(status=Status.COMPLETED, created_by__isnull=False).created_by)
    found = next(walk(theirs, erasing.BATCH, by="created_at"))
    assert removal.strip(removal.clear(found).pks, timezone.now(), names=True)


WORK: dict[str, Callable[[], Any]] = {
    "a claim": lambda: claim(1),
    "a batch of claims": lambda: claim(50),
    "the next in line": lambda: claims.next_in_line("default"),
    "the next in every line": claims.next_in_lines,
    "a cancel": lambda: claims.claim_cancel(some(status=Status.SUBMITTED).pk, "default"),
    "how many cancels are left": lambda: claims.cancels_left("default"),
    "what is on its way": lambda: loads.load(workspaces.get("default"), timezone.now()),
    "the sweep": sweep.sweep,
    "a poll": a_poll_is_noted,
    "a read at once": lambda: checking.ask([some(status=Status.SUBMITTED).pk]),
    "an event": an_event_comes,
    "a new render": lambda: services.create_render("a fox", reference="order-new"),
    "how many of a person wait": lambda: count_waiting(some(status=Status.PENDING).created_by),
    "a known reference": lambda: asked_again(some(reference__isnull=False)),
    "an end without Sume": lambda: RenderJob.objects.take_unfinished(timezone.now(), 60),
    "how far it is": lambda: progress_of(some(status=Status.PENDING)),
    "the gate's page": lambda: standing.figures("default"),
    "a person's batch": lambda: batches.hold_renders(RenderJob.objects.filter(created_by=1)),
    "a batch of what is old": lambda: prune(completed=30, failed=30, canceled=30),
    "a batch of old media": lambda: prune(media=30),
    "a batch of old lines": lambda: prune(events=30),
    "a batch of what is erased": erase_some,
    "why it needs attention": lambda: attention.reason(some(status=Status.FAILED)),
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_workers_and_services_ask_by_index(work: Callable[[], Any]) -> None:
    with plans_of_all() as plans:
        work()
    assert_by_index(plans)


def test_a_scrape_asks_by_index() -> None:
    cache.set(measuring.CACHE_KEY, {"completed": 1})  # else counted, by the index of the ends
    with plans_of_all() as plans:
        found = measuring.standing()
    assert_by_index(plans)
    assert sum(found.jobs.values()) > 1000


def test_fair_claims_ask_by_index(settings: Any) -> None:
    settings.RENDERS = {**settings.RENDERS, "FAIR": 1}
    with plans_of_all() as plans:
        claim(5)
    assert_by_index(plans)


def test_a_sweep_that_finds_nothing_asks_by_index() -> None:
    renders, now = RenderJob.objects.order_by(), timezone.now()
    before = now - timedelta(days=2)
    queries = [
        renders.stuck_submitting(before, conf.REAP_AFTER_SECONDS),
        renders.withdrawn(),
        renders.expired(before, before),
        renders.late(before, 0).not_swept_since(before),
        renders.unhandled_late(before, 0).not_swept_since(before),
        claims.line("default", now).waiting_since(before),
    ]
    with plans_of_all() as plans:
        for query in queries:
            query.pks(conf.SWEEP_BATCH)
    assert len(plans) == len(queries)
    assert_by_index(plans)


# --- What people ask --------------------------------------------------------------------------


def logged_in(*, staff: bool) -> Client:
    users = get_user_model().objects
    client = Client()
    client.force_login(users.create_superuser("root") if staff else users.get(username="user7"))
    return client


LIST = "/admin/renders/renderjob/"
STATES = [*Status.values, "in_flight", "held"]
REASONS = ["any", *attention.Reason.values]
STAFF_PAGES = [
    "/admin/",
    LIST,
    *(f"{LIST}?{urlencode({'status': state})}" for state in STATES),
    *(f"{LIST}?{urlencode({'standing': reason})}" for reason in REASONS),
    f"{LIST}?status=failed&ended=today",
    f"{LIST}?ended=month",
    f"{LIST}?kind__exact=avatar",
    f"{LIST}?who=nobody",
    f"{LIST}?p=3",
    "/admin/renders/gate/",
    "/renders/",
    "/renders/?status=open",
    *(f"/renders/?status={state}" for state in [*Status.values, "held", "overdue"]),
    "/renders/?kind=avatar",
    "/renders/?whose=mine",
    "/api/renders/",
    *(f"/api/renders/?status={state}" for state in Status.values),
    "/api/renders/?status=completed,failed&limit=20",
    "/api/renders/?reference=order-150000",
]
PAGES = [
    "/renders/",
    "/renders/?status=failed",
    "/renders/?status=pending&kind=video",
    "/renders/?q=number",
    "/api/renders/",
    "/api/renders/?status=completed&kind=image",
    "/api/renders/?q=boat",
]


@pytest.mark.parametrize("page", STAFF_PAGES)
def test_pages_of_all_renders_ask_by_index(page: str) -> None:
    client = logged_in(staff=True)
    client.get(page)  # what is kept for minutes is kept
    with plans_of_all() as plans:
        response = client.get(page)
    assert response.status_code == 200
    assert_by_index(plans)


@pytest.mark.parametrize("ask", [work.reads, work.overdue])
def test_questions_about_health_ask_by_index(ask: Callable[[], object]) -> None:
    with plans_of_all() as plans:
        ask()
    assert_by_index(plans)


def test_the_search_finds_an_id_by_index() -> None:
    client, row = logged_in(staff=True), some(status=Status.COMPLETED)
    client.get(LIST)  # what is kept for minutes is kept
    for words in (str(row.pk), row.pk.hex[:8]):
        with plans_of_all() as plans:
            response = client.get(LIST, {"q": words})
        assert str(row.pk) in response.content.decode()
        assert_by_index(plans)


@pytest.mark.parametrize("page", PAGES)
def test_pages_of_one_person_ask_by_index(page: str) -> None:
    client = logged_in(staff=False)
    with plans_of_all() as plans:
        response = client.get(page)
    assert response.status_code == 200
    assert_by_index(plans)


@pytest.mark.parametrize("status", Status.values)
def test_the_page_of_one_render_asks_by_index(status: str) -> None:
    client, row = logged_in(staff=True), some(status=status)
    for page in (
        f"/renders/{row.pk}/",
        f"/renders/{row.pk}/live/",
        f"{LIST}{row.pk}/change/",
        f"/api/renders/{row.pk}/",
    ):
        with plans_of_all() as plans:
            assert client.get(page).status_code == 200
        assert_by_index(plans)


def test_pages_further_back_cost_no_more() -> None:
    client, row = logged_in(staff=True), some(status=Status.COMPLETED)
    for way in ("before", "after"):
        with plans_of_all() as plans:
            assert client.get("/renders/", {way: mark(row)}).status_code == 200
        assert_by_index(plans)


def test_what_a_month_cost_is_read_from_an_index_and_kept() -> None:
    client = logged_in(staff=True)
    with plans_of_all() as plans:
        client.get("/admin/")
    sums = [plan for plan in plans if "SUM(" in plan.sql]
    assert len(sums) == 2
    assert not any(plan.scanned() for plan in sums)
    with plans_of_all() as plans:
        client.get("/admin/")
    assert len([plan for plan in plans if "SUM(" in plan.sql]) == 1
