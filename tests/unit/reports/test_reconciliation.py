"""Sume's list of jobs against the rows: what is missing on either side, and what was compared."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from renders.exceptions import (
    BackOff,
    Closed,
    NotFound,
    OutcomeUnknown,
    Paused,
    Rejected,
    UnknownWorkspace,
)
from renders.limits import read_quota
from renders.models import RenderJob
from renders.reports import reconciliation
from renders.reports.reconciliation import AcceptedRender, Check
from renders.states import TERMINAL, Status
from renders.sume.replies import ListedJob, SumeFault
from tests.rows import NOW, a_render, as_new, stored

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def now(monkeypatch):
    monkeypatch.setattr("renders.reports.reconciliation.timezone.now", lambda: NOW)


def listed(job_id, ago=0.5):
    """A job that Sume lists, created so many hours ago; None: Sume does not say when."""
    created = "" if ago is None else (NOW - ago * HOUR).isoformat()
    return ListedJob(job_id, "image_generation", "completed", created)


def accepted(job_id, ago=0.5, status=Status.SUBMITTED, **fields):
    """A row that Sume accepted so many hours ago."""
    at = NOW - ago * HOUR
    ended = {"finished_at": at} if status in TERMINAL else {}
    return stored(status, sume_job_id=job_id, submitted_at=at, **{**ended, **fields})


class Lister:
    """Sume: lists these jobs, knows `known` beside them, answers for others as `errors` say."""

    def __init__(self, *jobs, known=(), errors=None):
        self.jobs_listed = list(jobs)
        self.known = set(known)
        self.errors = errors or {}
        self.limits = []
        self.asked = []
        self.workspaces = set()

    def __call__(self, workspace):
        self.workspaces.add(workspace)
        return self

    def jobs(self, limit):
        self.limits.append(limit)
        if "list" in self.errors:
            raise self.errors["list"]
        return self.jobs_listed[:limit]

    def record_fault(self, job_id):
        self.asked.append(job_id)
        if job_id in self.errors:
            raise self.errors[job_id]
        if job_id not in self.known:
            raise NotFound("There is no such job.", code="job_not_found", status=404)
        return SumeFault()


def compare(sume, workspace="default", *, limit=10, hours=72.0, checks=10):
    return reconciliation.compare(workspace, sume, limit=limit, hours=hours, checks=checks)


def job_ids(renders):
    return [render.job_id for render in renders]


# --- Jobs without a row -------------------------------------------------------------------


def test_jobs_that_no_row_names_are_found():
    accepted("job_1")
    accepted("job_2", status=Status.FAILED)
    sume = Lister(listed("job_3"), listed("job_2"), listed("job_1"), listed("job_0"))

    found = compare(sume)

    assert [job.id for job in found.without_row] == ["job_3", "job_0"]
    assert (found.listed, found.unlisted, sume.limits) == (4, [], [10])
    assert sume.workspaces == {"default"}


def test_a_row_of_any_workspace_names_its_job():
    accepted("job_1", workspace="acme")
    accepted("job_2", ago=1_000)

    assert compare(Lister(listed("job_1"), listed("job_2"))).without_row == []


def test_a_job_that_is_listed_twice_is_reported_once():
    found = compare(Lister(listed("job_1"), listed("job_1")))

    assert (found.listed, job_ids_of(found)) == (1, ["job_1"])


def job_ids_of(found):
    return [job.id for job in found.without_row]


def test_many_jobs_are_looked_up_in_batches():
    for number in range(0, 1_200, 400):
        accepted(f"job_{number}")
    jobs = [listed(f"job_{number}") for number in range(1_200)]

    with CaptureQueriesContext(connection) as asked:
        found = compare(Lister(*jobs), limit=2_000)

    assert len(found.without_row) == 1_197
    looked_up = 'SELECT "renders_renderjob"."sume_job_id"'
    assert sum(one["sql"].startswith(looked_up) for one in asked) == 3


def many_rows():
    """Five thousand that ended long ago, so that PostgreSQL prefers an index."""
    if connection.vendor != "postgresql":
        pytest.skip("Plans are PostgreSQL's.")
    as_new()
    long_ago = {"finished_at": NOW - 1_000 * HOUR, "submitted_at": NOW - 1_001 * HOUR}
    RenderJob.objects.bulk_create(
        [
            a_render(Status.COMPLETED, sume_job_id=f"job_{number}", handled_at=NOW, **long_ago)
            for number in range(5_000)
        ]
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE renders_renderjob")


@pytest.mark.parametrize("number", [3, 500])
def test_jobs_are_looked_up_by_the_index_of_job_ids(number):
    many_rows()

    rows = reconciliation.rows_of([f"job_{one}" for one in range(number)])

    assert "renders_job_id" in rows.values_list("sume_job_id").explain()


def test_renders_of_the_time_are_found_by_indexes():
    many_rows()

    default = RenderJob.objects.filter(workspace="default")
    running, ended = reconciliation.accepted(default, NOW - 72 * HOUR, NOW)

    assert "Seq Scan" not in running.explain()
    assert "renders_ended" in ended.explain()


# --- Rows whose job is not listed ---------------------------------------------------------


def test_renders_of_the_time_whose_job_is_not_listed_are_to_be_checked():
    running = accepted("job_1", ago=2)
    ended = [accepted(f"job_{status}", ago=1, status=status) for status in TERMINAL]
    accepted("job_listed")
    accepted("job_old", ago=73)
    accepted("job_old_done", ago=73, status=Status.COMPLETED)
    accepted("job_acme", workspace="acme")
    stored(Status.PENDING)
    stored(Status.FAILED, sume_job_id="", submitted_at=None)

    found = compare(Lister(listed("job_listed")))

    assert found.unlisted[0] == AcceptedRender(running.pk, "job_1", "image", "submitted")
    assert {render.pk for render in found.unlisted[1:]} == {render.pk for render in ended}
    assert found.unchecked == 0


def test_a_render_that_was_accepted_long_before_its_end_is_of_its_own_time():
    accepted("job_1", ago=80, status=Status.COMPLETED, finished_at=NOW - HOUR)

    assert compare(Lister()).unlisted == []


def test_a_render_that_sume_accepts_after_the_list_was_asked_for_is_not_missing_from_it():
    accepted("job_1", ago=-0.01)

    assert compare(Lister()).unlisted == []


def test_no_more_are_checked_than_wanted_running_and_newest_ones_first():
    for number in range(3):
        accepted(f"done_{number}", ago=number + 0.1, status=Status.COMPLETED)
        accepted(f"running_{number}", ago=number + 0.2)

    found = compare(Lister(), checks=4)

    assert job_ids(found.unlisted) == ["running_0", "running_1", "running_2", "done_0"]
    assert found.unchecked == 2
    none = compare(Lister(), checks=0)
    assert (none.unlisted, none.unchecked) == ([], 6)


# --- What is not sent yet -----------------------------------------------------------------


def test_what_is_not_sent_yet_is_counted():
    stored(Status.PENDING)
    stored(Status.PENDING, held_at=NOW)
    stored(Status.PENDING, outcome_unknown_at=NOW)
    stored(Status.SUBMITTING)
    stored(Status.PENDING, workspace="acme", outcome_unknown_at=NOW)
    accepted("job_1")

    found = compare(Lister(listed("job_1")))

    assert (found.unsent, found.unsure) == (4, 1)


# --- Whether all was compared -------------------------------------------------------------


@pytest.mark.parametrize(
    ("ages", "cut", "whole"),
    [
        pytest.param([0, 1], False, True, id="shorter than the limit"),
        pytest.param([0, 1, 2], True, False, id="cut within the time"),
        pytest.param([0, 1, 80], True, True, id="cut, and reaches back beyond the time"),
        pytest.param([80, 1, 0], True, False, id="cut, the oldest first"),
        pytest.param([0, 90, 80], True, False, id="cut, in no order"),
        pytest.param([0, None, 80], True, False, id="cut, without some times"),
        pytest.param([None, None, None], True, False, id="cut, without times"),
    ],
)
def test_a_list_as_long_as_the_limit_may_be_cut(ages, cut, whole):
    jobs = [listed(f"job_{number}", ago) for number, ago in enumerate(ages)]

    found = compare(Lister(*jobs), limit=3)

    assert found.cut is cut
    assert found.is_whole(Check([], known=0, refused=0)) is whole


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-05-04T11:00:00", "1777888800", "9" * 50, "2026-13-01T00:00:00Z"]
)
def test_an_odd_time_says_nothing_about_where_the_list_ends(text):
    job = ListedJob("job_1", "", "", text)

    assert compare(Lister(job), limit=1).ends_at is None


def test_a_time_with_a_zone_says_where_the_list_ends():
    job = ListedJob("job_1", "", "", "2026-05-01T10:00:00+02:00")

    assert compare(Lister(job), limit=1).ends_at == datetime(2026, 5, 1, 8, tzinfo=UTC)


def test_a_list_that_lacks_jobs_which_sume_knows_is_not_whole():
    accepted("job_1")
    sume = Lister(listed("job_2"), known=["job_1"])
    found = compare(sume)

    assert found.is_whole(Check([], known=0, refused=0))
    assert not found.is_whole(reconciliation.check("default", sume, found.unlisted))


@pytest.mark.parametrize(("checks", "refused"), [(0, 0), (10, 1)])
def test_what_was_not_checked_was_not_compared(checks, refused):
    accepted("job_1")
    found = compare(Lister(), checks=checks)

    assert not found.is_whole(Check([], known=0, refused=refused))


# --- What Sume knows ----------------------------------------------------------------------


def of(*ids):
    return [AcceptedRender(uuid.uuid4(), job_id, "image", "submitted") for job_id in ids]


def test_only_a_404_says_that_sume_does_not_know_a_job():
    renders, done = of("job_1", "job_2", "job_3", "job_4"), []
    refusal = Rejected("No.", code="odd_id", status=422)
    sume = Lister(known=["job_1"], errors={"job_3": refusal})

    found = reconciliation.check("default", sume, renders, done.append)

    assert found == Check([renders[1], renders[3]], known=1, refused=1)
    assert sume.asked == ["job_1", "job_2", "job_3", "job_4"]
    assert done == [1] * 4


ERRORS = [
    Paused("Key refused.", code="unauthorized", status=401),
    BackOff("Slow down.", code="rate_limit_exceeded", status=429),
    OutcomeUnknown("No answer.", code="no_answer"),
]


each_error = pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)


@each_error
def test_without_a_list_nothing_is_concluded(error):
    accepted("job_1")

    with pytest.raises(type(error)):
        compare(Lister(errors={"list": error}))


@each_error
def test_where_sume_does_not_answer_no_job_is_called_unknown(error):
    sume = Lister(errors={"job_2": error})

    with pytest.raises(type(error)):
        reconciliation.check("default", sume, of("job_1", "job_2", "job_3"))
    assert sume.asked == ["job_1", "job_2"]


def test_a_workspace_that_is_not_configured_is_not_asked():
    sume = Lister()

    with pytest.raises(UnknownWorkspace):
        compare(sume, "gone")
    assert sume.limits == []


# --- The read limit -----------------------------------------------------------------------


def limited(monkeypatch, refusals, code=read_quota.USED_UP):
    """The next reads find the limit used up so many times; returns the waits for it."""
    waits = []
    left = [Closed("Wait.", code=code, until=NOW + timedelta(seconds=0.5))] * refusals

    def read(workspace, ask):
        if left:
            raise left.pop()
        return ask()

    monkeypatch.setattr("renders.reports.reconciliation.read_quota.read", read)
    monkeypatch.setattr("renders.reports.reconciliation.time.sleep", waits.append)
    return waits


def test_a_used_up_read_limit_is_waited_for(monkeypatch):
    waits = limited(monkeypatch, 2)

    assert compare(Lister(listed("job_1"))).listed == 1
    assert waits == [0.5, 0.5]


def test_the_wait_for_the_read_limit_has_an_end(monkeypatch):
    clock = iter(range(0, 1_000, 25))
    monkeypatch.setattr("renders.reports.reconciliation.time.monotonic", lambda: float(next(clock)))
    waits = limited(monkeypatch, 1_000)

    with pytest.raises(Closed):
        compare(Lister())
    assert len(waits) == 2


def test_a_pause_is_not_waited_for(monkeypatch):
    waits = limited(monkeypatch, 1, code="unauthorized")

    with pytest.raises(Closed):
        compare(Lister())
    assert waits == []


def test_every_read_is_taken_from_the_read_limit(monkeypatch):
    sent = []
    monkeypatch.setattr(
        "renders.reports.reconciliation.read_quota.read",
        lambda workspace, ask: (sent.append(workspace), ask())[1],
    )
    accepted("job_1", workspace="default")
    sume = Lister(known=["job_1"])

    reconciliation.check("default", sume, compare(sume).unlisted)

    assert sent == ["default", "default"]
