"""What a person reads after a backup was restored, and the exit status of it."""

import io
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError
from django.utils import timezone

from renders import services
from renders.management.commands import rendersreconcile as module
from renders.models import RenderEvent, RenderJob
from renders.reports import reconciliation
from renders.services import create_render
from renders.states import OUTCOME_UNKNOWN, Status
from tests.rows import stored

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def paused(db):
    """As after a restore: a person has paused sending."""
    services.pause_sending("default")


def run(*args):
    """The exit status, the output and the errors."""
    out, errors, status = io.StringIO(), io.StringIO(), 0
    try:
        call_command("rendersreconcile", *args, stdout=out, stderr=errors, no_color=True)
    except SystemExit as end:
        status = end.code
    return status, out.getvalue(), errors.getvalue()


def made(sume, *prompts):
    """Renders that Sume has made."""
    services.resume_sending("default")
    renders = [sume.run_to_end(create_render(prompt)) for prompt in prompts]
    services.pause_sending("default")
    return renders


def lost(render):
    """As if the backup was made before this render."""
    RenderJob.objects.filter(pk=render.pk).delete()
    return render.sume_job_id


def unknown(status=Status.SUBMITTED, job_id="job_gone", **fields):
    """A render that names a job which Sume does not know."""
    at = timezone.now()
    ended = {"finished_at": at, "handled_at": at} if status == Status.COMPLETED else {}
    return stored(status, **{"sume_job_id": job_id, "submitted_at": at, **ended, **fields})


def everything():
    return [list(model.objects.order_by("pk").values()) for model in (RenderJob, RenderEvent)]


def test_where_all_match_it_says_so(sume):
    made(sume, "a fox", "a hen")

    status, out, errors = run()

    assert (status, errors) == (0, "")
    first, *lines = out.splitlines()
    assert first.startswith("Jobs that Sume lists: 2, back to ")
    assert lines == [
        "Jobs without a render: 0",
        "Renders of the last 72 h whose job Sume does not know: 0",
        "",
        # The list may be shorter than asked for because Sume lists no more.
        "All that Sume lists matches.",
    ]


def test_what_failed_with_an_unknown_outcome_is_to_be_sent_again_before_anything_is_made_again(
    sume,
):
    [row] = made(sume, "a fox")
    facts = {"status": Status.FAILED, "error_code": OUTCOME_UNKNOWN, "sume_job_id": ""}
    RenderJob.objects.filter(pk=row.pk).update(**facts, result=None)

    status, out, _ = run()

    assert status == 1
    assert "Failed with an unknown outcome: 1 render." in out
    assert out.index("send them again with their own keys") < out.index("create it again")


def test_jobs_of_lost_rows_are_listed_with_what_to_do(sume):
    kept, one, other = made(sume, "a fox", "a secret prompt", "FAIL a hen")
    ids = [lost(other), lost(one)]

    status, out, errors = run()

    lines = out.splitlines()
    assert (status, errors) == (1, "")
    assert lines[1] == "Jobs without a render: 2"
    rows = [line.split() for line in lines[2:4]]
    assert [row[:3] for row in rows] == [
        [ids[0], "image_generation", "failed"],
        [ids[1], "image_generation", "completed"],
    ]
    assert lines[2].index("image_generation") == lines[3].index("image_generation")
    assert "1970" not in out and all(row[3].endswith("+00:00") for row in rows)
    assert "2 jobs without a render, 0 renders whose job Sume does not know." in out
    assert "Nothing was changed." in out
    assert "create it again with the same reference" in out
    assert "job_not_found" not in out
    assert kept.sume_job_id not in out


def test_renders_whose_job_sume_does_not_know_are_listed_with_what_it_means(sume):
    made(sume, "a fox")
    running, done = unknown(), unknown(Status.COMPLETED, "job_gone_long_ago")

    status, out, _ = run()

    lines = out.splitlines()
    assert status == 1
    assert lines[2] == "Renders of the last 72 h whose job Sume does not know: 2"
    assert lines[3].split() == [str(running.pk), "job_gone", "image", "submitted"]
    assert lines[4].split() == [str(done.pk), "job_gone_long_ago", "image", "completed"]
    assert lines[3].index("image") == lines[4].index("image")
    assert "0 jobs without a render, 2 renders whose job Sume does not know." in out
    assert "Submitted ones fail with job_not_found" in out


def test_a_render_that_gets_its_job_back_needs_no_other(sume):
    """Restored as pending, although it was sent after the backup: the same key, the same job."""
    [render] = made(sume, "a fox")
    backup = RenderJob.objects.get(pk=render.pk)
    lost(render)
    stored(Status.PENDING, pk=backup.pk, idempotency_key=backup.idempotency_key)

    status, out, _ = run()
    assert status == 1
    assert "Not sent yet: 1 render.\n" in out
    assert "First resume sending: an unsent render gets its job" in out

    services.resume_sending("default")
    sume.run_all_to_end()
    assert len(sume.bills) == 1
    assert run()[0] == 0


def test_renders_that_sume_may_hold_are_counted(sume):
    stored(Status.PENDING)
    stored(Status.PENDING, outcome_unknown_at=timezone.now())

    status, out, _ = run()

    assert status == 0
    assert "Not sent yet: 2 renders, 1 of them after an unclear answer.\n" in out


def test_nothing_is_changed(sume):
    lost(made(sume, "a fox")[0])
    unknown()
    stored(Status.PENDING, outcome_unknown_at=timezone.now())
    before, posts = everything(), dict(sume.sandbox.ledger.posts)

    assert run()[0] == 1

    assert everything() == before
    assert sume.sandbox.ledger.posts == posts


def test_neither_key_nor_prompt_nor_address_is_shown(sume, settings):
    settings.RENDERS = {**settings.RENDERS, "API_KEY": "sk-canary"}
    lost(made(sume, "a secret fox")[0])
    unknown(prompt="a secret hen")

    shown = "".join(map(str, run()))

    assert "secret" not in shown
    assert "sk-canary" not in shown
    assert "http" not in shown


def test_what_sume_lists_cannot_command_the_terminal(sume, monkeypatch):
    job = reconciliation.ListedJob("job_\x1b[31m1", "[bold]", "a\nb", "")
    monkeypatch.setattr("renders.sume.client.SumeClient.jobs", lambda client, limit: [job])

    assert "  job_ [31m1  [bold]  a b  -\n" in run()[1]


# --- Whether all was compared -------------------------------------------------------------


def test_where_sending_is_not_paused_it_says_so(sume):
    services.resume_sending("default")

    status, out, _ = run()

    assert status == 0
    assert out.startswith("Sending is not paused: workers may send meanwhile.")
    services.pause_sending("default")
    assert "not paused" not in run()[1]


def test_a_list_as_long_as_the_limit_may_be_cut(sume):
    made(sume, "a fox", "a hen", "a boat")

    status, out, _ = run("--limit", "2")

    assert status == 1
    assert "The list is as long as --limit allows: older jobs may be missing." in out
    assert "No difference was found.\nNot everything was compared. If a limit" in out
    assert run("--limit", "4")[0] == 0


def test_a_cut_list_that_reaches_back_beyond_the_time_is_enough(sume, monkeypatch):
    [render] = made(sume, "a fox")
    created = (timezone.now() - 80 * HOUR).isoformat()
    RenderJob.objects.update(submitted_at=created)
    job = reconciliation.ListedJob(render.sume_job_id, "", "completed", created)
    monkeypatch.setattr("renders.sume.client.SumeClient.jobs", lambda client, limit: [job])

    status, out, _ = run("--limit", "1")

    assert status == 0
    assert f"back to {created[:10]}" in out
    assert run("--limit", "1", "--hours", "81.5")[0] == 1


def test_a_list_that_sume_shortens_is_noticed(sume, monkeypatch):
    one, _ = made(sume, "a fox", "a hen")
    client = module.sume("default")
    jobs = [job for job in client.jobs(9) if job.id != one.sume_job_id]
    monkeypatch.setattr("renders.sume.client.SumeClient.jobs", lambda client, limit: jobs)

    status, out, _ = run()

    assert status == 1
    assert "yet Sume knows 1 more jobs of these renders: it does not list them all." in out


def test_what_is_beyond_the_number_of_checks_is_counted(sume):
    for number in range(3):
        unknown(job_id=f"job_{number}")

    status, out, _ = run("--checks", "1")

    assert status == 1
    assert "Not looked up (--checks reached): 2\n" in out
    assert "0 jobs without a render, 1 render whose job Sume does not know." in out
    assert run("--checks", "0")[0] == 1


def test_older_renders_are_not_looked_up(sume):
    unknown(submitted_at=timezone.now() - 2 * HOUR)

    assert run("--hours", "1.5")[0] == 0
    assert "Renders of the last 2.5 h whose" in run("--hours", "2.5")[1]
    assert run("--hours", "2.5")[0] == 1


# --- Several accounts ---------------------------------------------------------------------


@pytest.fixture
def acme(settings):
    """A second account; without a key of its own until a test gives it one."""
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": {}}}

    def tell(**account):
        own = {"BASE_URL": settings.RENDERS["BASE_URL"], **account}
        settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": own}}

    return tell


def test_each_workspace_is_compared_with_its_own_account(sume, acme):
    acme(API_KEY="acme-key")
    made(sume, "a fox")
    unknown(workspace="acme")

    status, out, _ = run()

    own, other = out.split("Workspace acme:\n")
    assert status == 1
    assert own.startswith("Workspace default:\nJobs that Sume lists: 1, back to ")
    assert other.startswith("Sending is not paused")
    assert "does not know: 1\n" in other and "does not know: 0\n" in own
    assert run("--workspace", "default")[:2][0] == 0
    assert "job_gone" in run("--workspace", "acme")[1]


def test_a_workspace_without_a_key_and_renders_is_left_out(sume, acme):
    status, out, _ = run()
    assert status == 0
    assert "acme" not in out

    unknown(workspace="acme")
    status, out, errors = run()
    assert status == 2
    assert "All match" not in out
    assert errors.startswith("The workspace acme was not compared. No usable API key is set")


def test_one_account_that_fails_does_not_hide_another(sume, acme):
    acme(API_KEY="acme-key", BASE_URL="http://127.0.0.1:9")
    lost(made(sume, "a fox")[0])

    status, out, errors = run()

    assert status == 2
    assert "1 job without a render" in out
    assert errors.startswith("The workspace acme was not compared. Sume cannot be reached")


# --- What goes wrong ----------------------------------------------------------------------

FAULTS = {
    "unauthorized": ("unauthorized", "Set the right key, or mend the account at Sume."),
    "rate_limited:3": ("rate_limit_exceeded", "Try again in "),
    "unavailable": ("unavailable", "Try again in "),
    "server_error": ("http_502", "python manage.py rendersdoctor says what is wrong."),
    "html": ("unreadable_reply", "python manage.py rendersdoctor says what is wrong."),
}


@pytest.mark.parametrize(("fault", "words"), FAULTS.items(), ids=FAULTS)
def test_an_error_of_sume_says_what_to_do(sume, fault, words):
    unknown()
    before = everything()
    name, _, argument = fault.partition(":")
    sume.sandbox.faults.add(name, on="any", argument=argument or None)

    status, out, errors = run()

    code, advice = words
    assert (status, out) == (2, "")
    assert errors.startswith("Not compared. ")
    assert code in errors and advice in errors
    assert everything() == before


def test_reads_that_are_paused_are_not_sent(sume):
    sume.sandbox.faults.add("unauthorized", on="any")
    run()

    status, out, errors = run()

    assert (status, out) == (2, "")
    assert "Reads are paused until " in errors and "the gate's page" in errors


def test_a_limit_that_sume_refuses_is_named(sume):
    status, _, errors = run("--limit", "1001")

    assert status == 2
    assert "limit: Must be a number from 1 to 1000" in errors
    assert "give a smaller --limit" in errors


def test_ctrl_c_ends_it_without_a_traceback(sume, monkeypatch):
    def pressed(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(reconciliation, "check", pressed)

    assert run()[::2] == (130, "Stopped. Nothing was changed.\n")


def test_a_database_without_tables_is_said(monkeypatch):
    def missing(*args, **options):
        raise DatabaseError("no such column")

    monkeypatch.setattr(reconciliation, "compare", missing)

    with pytest.raises(CommandError, match=r"run: python manage\.py migrate") as end:
        run()
    assert end.value.returncode == 2


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--workspace", "gone"], "no workspace 'gone'; choose from: default"),
        (["--limit", "0"], "a whole number from 1 to 10000"),
        (["--limit", "10001"], "a whole number from 1 to 10000"),
        (["--hours", "0"], "a number of hours above 0"),
        (["--hours", "nan"], "a number of hours above 0"),
        (["--checks", "-1"], "a whole number from 0 to 10000"),
        (["--checks", "10001"], "a whole number from 0 to 10000"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_explained(args, words):
    with pytest.raises(CommandError, match=words):
        run(*args)
