import io
import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone

from renders.management import follow
from renders.management.commands import render as module
from renders.models import RenderJob
from renders.states import Status

pytestmark = pytest.mark.django_db


@pytest.fixture
def sume(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, dict[str, Any]]]:
    """Ends each render as told for its prompt, instead of the first wait."""
    ends: dict[str, dict[str, Any]] = {}

    def work(seconds: float) -> None:
        now = timezone.now()
        for prompt, fields in ends.items():
            RenderJob.objects.filter(prompt=prompt).update(
                finished_at=now, handled_at=now, submitted_at=now, sume_job_id="job", **fields
            )

    monkeypatch.setattr(follow.time, "sleep", work)
    yield ends


def render(*arguments: str, **options: Any) -> tuple[int, str]:
    """Run the command; give its exit status and output."""
    out = io.StringIO()
    try:
        call_command("render", *arguments, stdout=out, **options)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    return 0, out.getvalue()


def test_all_completed(sume: dict[str, Any]) -> None:
    sume["a red fox"] = {
        "status": Status.COMPLETED,
        "cost_usd_micros": 90_000,
        "result": {"artifacts": [{"url": "https://x/?sig=s3cret"}]},
    }
    status, out = render("a red fox")
    job = RenderJob.objects.get()
    assert status == 0
    assert f"/renders/{job.pk}/" in out
    assert "Cost: $0.0900" in out
    assert "s3cret" not in out


def test_one_failed(sume: dict[str, Any]) -> None:
    sume["a red fox"] = {"status": Status.COMPLETED}
    sume["FAIL"] = {"status": Status.FAILED, "error_code": "odd", "error_message": "Too odd."}
    status, out = render("a red fox", "FAIL")
    assert status == 1
    assert "odd: Too odd." in out
    assert render("a red fox", "FAIL", "--expect-sandbox-failures")[0] == 0


def test_a_canceled_one_is_no_success(sume: dict[str, Any]) -> None:
    sume["a red fox"] = {"status": Status.CANCELED}
    assert render("a red fox")[0] == 1


def test_no_end_in_time_hints_at_the_worker() -> None:
    status, out = render("a red fox", timeout=0.1)
    assert status == 3
    assert "1 of 1 renders did not end in 0.1 s" in out
    assert "celery -A project worker" in out


def test_no_progress_hints_at_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = follow.Following.until_end
    monkeypatch.setattr(
        follow.Following,
        "until_end",
        lambda self, show, timeout: wait(self, show, patience=0.1, interval=0.01),
    )
    status, out = render("a red fox")
    assert status == 3
    assert "did not move for" in out


def test_ctrl_c_stops_following_and_not_the_renders(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(follow.time, "sleep", interrupt)
    before = signal.getsignal(signal.SIGTERM)
    status, out = render("a red fox")
    assert status == 130
    assert "The renders go on" in out
    assert RenderJob.objects.get().status == Status.PENDING
    assert signal.getsignal(signal.SIGTERM) == before


def test_no_follow_prints_the_pages() -> None:
    status, out = render("a red fox", "a blue fox", no_follow=True)
    assert status == 0
    pages = {f"/renders/{job.pk}/" for job in RenderJob.objects.all()}
    assert {line.split()[0] for line in out.splitlines()} == pages


def test_every_option_reaches_the_render() -> None:
    user = get_user_model().objects.create_user("ann")
    options = ["--kind", "video", "--model", "m", "--priority", "7", "--user", "ann"]
    options += ["--param", "seed=7", "--param", 'style="ink"', "--reference", "r1", "--no-follow"]
    render("a red fox", *options)
    job = RenderJob.objects.get()
    assert (job.kind, job.model, job.priority, job.created_by) == ("video", "m", 7, user)
    assert job.params == {"seed": 7, "style": "ink"}
    render("a red fox", *options)
    assert RenderJob.objects.get() == job


def test_prompts_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a red fox\n\n  a blue fox \n"))
    render("-", "a green fox", no_follow=True)
    prompts = set(RenderJob.objects.values_list("prompt", flat=True))
    assert prompts == {"a red fox", "a blue fox", "a green fox"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a", "--user", "nobody"], "There is no user 'nobody'"),
        (["a", "b", "--reference", "r"], "--reference names one render"),
        (["a", " "], "prompt: Say what"),
        (["a", "--param", 'prompt="b"'], "prompt is not part of the params"),
        (["a", "--param", "style=ink"], "text needs its quotes"),
        (["a", "--param", "seed"], "is not KEY=JSON"),
        (["a", "--timeout", "-1"], "above zero"),
        (["a", "--timeout", "nan"], "above zero"),
        (["a", "--kind", "song"], "invalid choice"),
        # What a shell hands over where it is no text: half a surrogate pair for each byte.
        (["a \udcff"], "Half of a surrogate pair"),
        (["a", "--user", "\udcff"], "There is no user"),
        (["a", "--model", "\udcff"], "Half of a surrogate pair"),
        (["a", "--reference", "\udcff"], "Half of a surrogate pair"),
        (["a", "--param", 'style="\\ud800"'], "Half of a surrogate pair"),
        (["a", "--param", 'style="\\u0000"'], "NUL characters cannot be stored"),
        (["a", "--param", "seed=NaN"], "is not JSON"),
        (["a", "--param", "seed=1e400"], "NaN and infinity"),
        (["a", "--param", f"seed={'9' * 5000}"], "is not JSON"),
        (["a", "--param", f"seed={'[' * 100_000}"], "is not JSON"),
        (["a", "--priority", "9" * 5000], "invalid int value"),
    ],
)
def test_wrong_usage_is_told_and_nothing_is_stored(arguments: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words) as caught:
        render(*arguments)
    str(caught.value).encode("utf-8", "backslashreplace")
    assert not RenderJob.objects.exists()


def test_empty_input_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    with pytest.raises(CommandError) as caught:
        render("-")
    assert caught.value.returncode == 2


def test_a_database_that_is_not_ready_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any, **fields: Any) -> None:
        raise OperationalError("no such table")

    monkeypatch.setattr(module, "create_renders", broken)
    with pytest.raises(CommandError, match=r"manage\.py migrate") as caught:
        render("a")
    assert caught.value.returncode == 2


# --- Kinds with fields of their own -------------------------------------------------------

PHOTO = """image_url="https://example.com/a.png\""""


def test_the_avatar_has_an_option_of_its_own() -> None:
    render("Hello!", "--kind", "avatar_video", "--avatar", "@mara", no_follow=True)
    job = RenderJob.objects.get()

    assert (job.model, job.params) == ("", {"avatar_handle": "mara"})


def test_an_avatar_from_a_photo_needs_no_prompt() -> None:
    arguments = ["--kind", "avatar", "--avatar", "mara", "--param", PHOTO]
    _, out = render(*arguments, no_follow=True)

    assert RenderJob.objects.get().prompt == ""
    assert "@mara, from a photo" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "prompt: Say what the picture or clip should show"),
        (["--kind", "avatar", "--avatar", "a"], "or --param image_url='\"https://…\"'."),
        (["--kind", "avatar", "--avatar", "a", ""], "or --param image_url='\"https://…\"'."),
        (["a", "--kind", "avatar_video"], "Give --avatar HANDLE."),
        (["a", "--kind", "avatar", "--avatar", "x y"], "Give --avatar HANDLE."),
        (["a", "--avatar", "mara"], "--avatar is for --kind avatar or avatar_video."),
        (
            ["a", "--kind", "avatar", "--avatar", "a", "--param", 'avatar_handle="b"'],
            "Give --avatar or --param avatar_handle, not both.",
        ),
        (
            ["--kind", "avatar", "--avatar", "a", "--param", 'sex="male"'],
            "Give --param ethnicity='\"Asian\"'.",
        ),
        (
            ["a", "--kind", "avatar_video", "--avatar", "a", "--param", "scene=7"],
            """Give --param scene='{"type": "prompt", "prompt": "…"}'.""",
        ),
        (["a", "--kind", "avatar", "--avatar", "a", "--model", "m"], "takes no model"),
    ],
)
def test_what_is_missing_is_told_with_the_option_that_gives_it(
    arguments: list[str], words: str
) -> None:
    with pytest.raises(CommandError, match=re.escape(words)):
        render(*arguments)
    assert not RenderJob.objects.exists()


def test_a_model_that_is_not_allowed_or_has_no_price_is_told(settings: Any) -> None:
    settings.RENDERS = {**settings.RENDERS, "MODELS": "a,b"}
    with pytest.raises(CommandError, match="model: The model sume/auto is not allowed") as caught:
        render("a fox")
    assert caught.value.returncode == 2

    settings.RENDERS = {**settings.RENDERS, "BUDGET_USD": 1}
    with pytest.raises(CommandError, match="add image:a=… to RENDERS_PRICES"):
        render("a fox", "--model", "a")
    with pytest.raises(CommandError, match="kind: The kind avatar has no price"):
        render("a fox", "--kind", "avatar", "--avatar", "mara")
    assert not RenderJob.objects.exists()
