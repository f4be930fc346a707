"""The API key, the password of Redis and what signs an address are nowhere they can be seen.

Each is a canary. Renders take every way there is, good and bad, through real workers; then all
that was written down is searched. The one place that may hold a signed address is the column
`RenderJob.result`: it is the link that the artifact's own view redirects to.
"""

import base64
import io
import json
import logging
import re
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from celery.utils.serialization import get_pickleable_exception
from django.contrib.auth import get_user_model
from django.core.files.storage import FileSystemStorage
from django.db import connection
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from django.views.debug import ExceptionReporter, get_exception_reporter_filter
from django_celery_results.models import TaskResult

from project.celery import app
from renders import services
from renders.conf import conf
from renders.conf.networks import read_private
from renders.coordination.connections import redis_client
from renders.demo.embedded_redis import EmbeddedRedis
from renders.exceptions import MediaError, OutcomeUnknown, Paused
from renders.limits import gate
from renders.media import downloads, storing
from renders.models import RenderJob
from renders.sandbox import Sandbox, effects
from renders.sandbox.replies import ApiError
from renders.states import RequestType
from renders.sume import client as client_module
from renders.sume.clients import sume
from tests.integration import engine
from tests.integration.stack import Stack
from tests.unit.sume.test_client import reply, serving

HERE = read_private("127.0.0.1")
KEY = "sk-canary-5ume"
PASSWORD = "pw-canary-r3dis"
SIGNED = "https://media.example/a.png?signature=canary-5igned"
# Of the key the beginning alone, too: texts are cut short.
SECRETS = (KEY, KEY[:8], PASSWORD, "signature=", "canary-5igned")
BASE64 = re.compile(r"[A-Za-z0-9+/]{24,}")


def leaks(text: str, secrets: tuple[str, ...] = SECRETS) -> list[str]:
    """The secrets that the text holds, in plain sight or as base64 (so Celery packs messages)."""
    packed = [_decoded(run) for run in set(BASE64.findall(text))]
    return [secret for secret in secrets if any(secret in part for part in (text, *packed))]


def _decoded(run: str) -> str:
    whole = len(run) - len(run) % 4
    return base64.b64decode(run[:whole]).decode("utf-8", "replace")


@pytest.fixture
def canaries(
    redis: EmbeddedRedis, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SimpleNamespace]:
    """A sandbox that lets in this key only and repeats it, and a Redis with a password."""

    def unauthorized() -> ApiError:
        # The second time where the longest text that is kept ends.
        message = f"The key {KEY} is wrong, see {SIGNED}.".ljust(1_990) + KEY
        return ApiError(401, "unauthorized", message)

    monkeypatch.setattr(effects, "unauthorized", unauthorized)
    monkeypatch.setenv("SUME_API_KEY", KEY)
    master: Any = redis_client()
    master.execute_command("ACL", "SETUSER", "canary", "on", f">{PASSWORD}", "~*", "&*", "+@all")
    with Sandbox(
        key=KEY,
        queued_seconds=0.1,
        processing_seconds=0.3,
        poll_seconds=0.4,
        writes_per_minute=None,
    ) as sandbox:
        url = redis.url.replace("//", f"//canary:{PASSWORD}@")
        settings.RENDERS = {
            **settings.RENDERS,
            "API_KEY": KEY,
            "BASE_URL": sandbox.url,
            "REDIS_URL": url,
        }
        settings.REDIS_URL = settings.CELERY_BROKER_URL = url
        settings.MEDIA_ROOT = tmp_path / "media"
        yield SimpleNamespace(sandbox=sandbox, redis=SimpleNamespace(url=url))
    redis_client().connection_pool.disconnect()
    master.execute_command("ACL", "DELUSER", "canary")


class Listener(threading.Thread):
    """Writes down what Redis is told and which events Celery's workers send."""

    END = "the-end-of-this-test"

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.commands: list[str] = []
        self.events: list[str] = []
        self._url = url
        self._receiver: Any = None
        self._other = threading.Thread(target=self._capture, daemon=True)

    def __enter__(self) -> "Listener":
        self.start()
        self._other.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._receiver.should_stop = True
        redis_client().echo(self.END)
        self.join()
        self._other.join()

    def run(self) -> None:
        client = redis.Redis.from_url(self._url, socket_timeout=None)
        with client.monitor() as monitor:
            for command in monitor.listen():
                self.commands.append(str(command))
                if self.END in self.commands[-1]:
                    break
        client.close()

    def _capture(self) -> None:
        with app.connection_for_read(self._url) as broker:
            handlers = {"*": lambda event: self.events.append(repr(event))}
            self._receiver = app.events.Receiver(broker, handlers=handlers)
            self._receiver.capture(limit=None, timeout=None, wakeup=False)


def kept_in_redis() -> Iterator[str]:
    """Every key and all that it holds."""
    read: dict[bytes, Callable[[Any, Any], Any]] = {
        b"string": lambda client, key: client.get(key),
        b"list": lambda client, key: client.lrange(key, 0, -1),
        b"hash": lambda client, key: client.hgetall(key),
        b"set": lambda client, key: client.smembers(key),
        b"zset": lambda client, key: client.zrange(key, 0, -1),
    }
    client: Any = redis_client()
    for key in client.scan_iter():
        yield f"{key} {read[client.type(key)](client, key)}"


def kept_in_database() -> Iterator[str]:
    """Every row of every table, without the one column that may hold signed addresses."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 (names from the database)
            names = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                fields = dict(zip(names, row, strict=True))
                if table == RenderJob._meta.db_table:
                    assert fields.pop("result", "") is None or fields["status"] == "completed"
                yield f"{table} {fields}"


def pages() -> Iterator[str]:
    """What the superuser sees: pages, API and admin, with all that Celery keeps of its tasks."""
    browser = Client()
    browser.force_login(get_user_model().objects.create_superuser("root"))
    paths = ["/renders/", "/renders/new/", "/renders/charts/"]
    paths += ["/api/renders/", "/admin/", "/readyz"]
    paths += [reverse(f"admin:{name}_changelist") for name in ("renders_renderjob", "auth_user")]
    paths += [reverse("admin:django_celery_results_taskresult_changelist")]
    for result in TaskResult.objects.all():
        paths.append(reverse("admin:django_celery_results_taskresult_change", args=[result.pk]))
    for render in RenderJob.objects.all():
        paths.append(reverse("renders:detail", args=[render.pk]))
        paths.append(reverse("renders:api_detail", args=[render.pk]))
        paths.append(reverse("admin:renders_renderjob_change", args=[render.pk]))
    for path in paths:
        reply = browser.get(path)
        assert reply.status_code == 200, path
        yield f"{path} {reply.headers} {reply.content.decode()}"


def drive(stack: Stack) -> None:
    """Take renders through every way there is to end, and through faults at every request."""
    faults = stack.sandbox.faults
    worker = stack.worker("-E")
    stack.run("beat", "-m", "celery", "-A", "project", "beat", "-s", f"{stack.marker}-beat")

    faults.add("unauthorized", on="submit")
    [refused] = stack.create("a key that is refused")
    stack.until(lambda: worker.has_written("Writes pause"), child=worker)
    stack.until(lambda: RenderJob.objects.filter(pk=refused.pk, status="pending").exists())
    services.resume_sending("default")

    for fault in ("unauthorized", "reset_before", "html"):
        faults.add(fault, on="status")
    for operation in ("result", "media", "record", "cancel"):
        faults.add("unauthorized", on=operation)
    stack.create("a boat", "a clip", "FAIL on purpose", "REJECT this", "[raise] once")
    late = stack.create(*(f"fox {number}" for number in range(6)))[-1]
    stack.until(lambda: RenderJob.objects.get(pk=late.pk).sume_job_id, child=worker)
    services.cancel_render(late)
    stack.until(lambda: worker.has_written("A receiver failed"), child=worker)
    stack.marker.touch()
    stack.until_handled(sweeping=False)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_whatever_happens_no_secret_is_written_down(
    database: str, canaries: SimpleNamespace, tmp_path: Path, caplog: Any
) -> None:
    stack = Stack(tmp_path, database, canaries.redis, canaries.sandbox)
    caplog.set_level(logging.INFO)
    try:
        with Listener(canaries.redis.url) as listener:
            drive(stack)
            told = app.control.inspect(limit=1, timeout=5)
            replies = [str(told.conf(with_defaults=True)), str(told.stats()), str(told.active())]
    finally:
        stack.stop()
    stack.assert_sound()

    server = canaries.sandbox
    met = {fault.fault for fault in server.ledger.faults}
    assert {"unauthorized", "reset_before", "html"} <= met
    links = [artifact["url"] for render in RenderJob.objects.all() for artifact in render.artifacts]
    assert links and all("signature=" in link for link in links)  # the search would find them
    places = {
        "logs of workers and beat": [stack.logs()],
        "log of this process and the sandbox": [caplog.text],
        "what Redis was told": listener.commands,
        "what Redis keeps": list(kept_in_redis()),
        "Celery's events": listener.events,
        "a worker's own account": replies,
        "database": list(kept_in_database()),
        "pages": list(pages()),
    }
    assert [name for name, texts in places.items() if not any(texts)] == []
    statuses = set(RenderJob.objects.values_list("status", flat=True))
    assert statuses >= {"completed", "failed"}
    assert "Traceback" in stack.logs()  # of the receiver
    assert TaskResult.objects.exists()
    found = {name: [text[:300] for text in texts if leaks(text)] for name, texts in places.items()}
    assert {name: texts for name, texts in found.items() if texts} == {}


# --- Tracebacks, with the variables of their frames ---------------------------------------


class BrokenStorage(FileSystemStorage):
    """Fails in a way that no storage should."""

    def _save(self, name: str, content: Any) -> str:
        raise RuntimeError("this storage fails")


def accounts(error: BaseException) -> dict[str, str]:
    """How an error is told: by Python, by logging, by Celery, by Django's pages and mails."""
    found = {
        "text": f"{error} {error!r} {vars(error)} {error.args}",
        "traceback": "".join(traceback.format_exception(error)),
        "Celery": repr(get_pickleable_exception(error)),
    }
    chain: BaseException | None = error
    while chain is not None:  # some follow `__context__` even where it is suppressed
        shown = traceback.TracebackException.from_exception(chain, capture_locals=True)
        found[f"variables of {type(chain).__name__}"] = "".join(shown.format())
        chain = chain.__cause__ or chain.__context__
    record = logging.LogRecord("x", logging.ERROR, "x", 1, "x", (), _info(error))
    found["log"] = logging.Formatter().format(record)
    return found


def _info(error: BaseException) -> Any:
    return type(error), error, error.__traceback__


def raised_by(call: Callable[[], Any]) -> BaseException:
    """The error, without the frames of this file, which know the canaries."""
    with pytest.raises(Exception) as caught:
        call()
    frames = caught.value.__traceback__
    while frames and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return caught.value.with_traceback(frames)


def broken(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("unforeseen")


def refused_key(sandbox: Sandbox, monkeypatch: Any) -> Any:
    sandbox.faults.add("unauthorized", on="status")
    return sume("default").status("job_1")


def no_answer(sandbox: Sandbox, monkeypatch: Any) -> Any:
    sandbox.faults.add("reset_before", on="status")
    return sume("default").status("job_1")


def no_json(sandbox: Sandbox, monkeypatch: Any) -> Any:
    sandbox.faults.add("html", on="submit")
    return sume("default").submit("/v1/images", "{}", "key-1")


def a_bug_while_reading(sandbox: Sandbox, monkeypatch: Any) -> Any:
    monkeypatch.setattr(client_module.replies, "read_error", broken)
    return sume("default").status("job_1")


def a_bug_below_requests(sandbox: Sandbox, monkeypatch: Any) -> Any:
    monkeypatch.setattr("urllib3.connectionpool.HTTPConnectionPool._get_conn", broken)
    return sume("default").status("job_1")


def a_download_that_fails(sandbox: Sandbox, monkeypatch: Any) -> Any:
    url = f"{sandbox.url}/media/job_1/result.png?signature=canary-5igned"
    return storing.save("1", 0, RenderJob(result={"artifacts": [{"url": url}]}).artifacts[0])


def a_download_from_nowhere(sandbox: Sandbox, monkeypatch: Any) -> Any:
    url = "http://127.0.0.1:9/a?signature=canary-5igned"
    return storing.save("1", 0, RenderJob(result={"artifacts": [{"url": url}]}).artifacts[0])


def a_target_that_fails(sandbox: Sandbox, monkeypatch: Any) -> Any:
    url = f"{sandbox.url}/?signature=canary-5igned"
    target: Any = SimpleNamespace(write=broken)
    return downloads.download(url, target, timeout=2, max_bytes=10_000, private=HERE)


def a_download_that_is_led_astray(sandbox: Sandbox, monkeypatch: Any) -> Any:
    with serving() as server:
        server.will(reply(302, body=b"", Location="http://10.0.0.1/a?signature=canary-5igned"))
        return downloads.download(server.url, io.BytesIO(), timeout=2, max_bytes=1, private=HERE)


def a_target_that_fails_after_a_redirect(sandbox: Sandbox, monkeypatch: Any) -> Any:
    target: Any = SimpleNamespace(write=broken)
    with serving() as server:
        server.will(
            reply(302, body=b"", Location="/a?signature=canary-5igned"), reply(200, body=b"x")
        )
        return downloads.download(server.url, target, timeout=2, max_bytes=9, private=HERE)


def a_bug_below_a_download(sandbox: Sandbox, monkeypatch: Any) -> Any:
    monkeypatch.setattr("urllib3.connectionpool.HTTPConnectionPool._get_conn", broken)
    return downloads.download(SIGNED, io.BytesIO(), timeout=2, max_bytes=1)


def a_setting_that_cannot_be_read(sandbox: Sandbox, monkeypatch: Any) -> Any:
    from django.conf import settings

    monkeypatch.setitem(settings.RENDERS, "MIN_POLL_SECONDS", "soon")
    return conf.MIN_POLL_SECONDS


def a_bug_below_redis(sandbox: Sandbox, monkeypatch: Any) -> Any:
    monkeypatch.setattr("redis.client.Redis.parse_response", broken)
    return gate.closed("default", RequestType.WRITES, timezone.now())


WAYS = {
    way.__name__.replace("_", " "): (way, kind)
    for way, kind in [
        (refused_key, Paused),
        (no_answer, OutcomeUnknown),
        (no_json, OutcomeUnknown),
        (a_bug_while_reading, RuntimeError),
        (a_bug_below_requests, RuntimeError),
        (a_download_that_fails, MediaError),
        (a_download_from_nowhere, MediaError),
        (a_target_that_fails, RuntimeError),
        (a_download_that_is_led_astray, MediaError),
        (a_target_that_fails_after_a_redirect, RuntimeError),
        (a_bug_below_a_download, MediaError),
        (a_setting_that_cannot_be_read, Exception),
        (a_bug_below_redis, RuntimeError),
    ]
}


@pytest.mark.parametrize(("way", "kind"), WAYS.values(), ids=WAYS)
def test_no_account_of_an_error_shows_a_secret(
    canaries: SimpleNamespace, monkeypatch: Any, way: Any, kind: Any
) -> None:
    with monkeypatch.context() as patches:
        error = raised_by(lambda: way(canaries.sandbox, patches))
    assert isinstance(error, kind)
    assert {name: leaks(text) for name, text in accounts(error).items() if leaks(text)} == {}


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize(("way", "kind"), WAYS.values(), ids=WAYS)
def test_no_error_page_of_django_shows_a_secret(
    canaries: SimpleNamespace, monkeypatch: Any, settings: Any, way: Any, kind: Any, debug: bool
) -> None:
    """With DEBUG on, Django filters settings alone: variables must be safe by themselves."""
    settings.DEBUG = debug
    with monkeypatch.context() as patches:
        error = raised_by(lambda: way(canaries.sandbox, patches))
    # Django's own server gives the whole environment to each request.
    addresses = ("REDIS_URL", "CELERY_BROKER_URL", "DATABASE_URL")
    environment = {"SUME_API_KEY": KEY, **dict.fromkeys(addresses, canaries.redis.url)}
    request = RequestFactory().get("/renders/", **environment)
    reporter = ExceptionReporter(request, *_info(error))
    page, mail = reporter.get_traceback_html(), reporter.get_traceback_text()
    assert "RENDERS" in page and "RENDERS" in mail  # the settings are there
    assert leaks(page) == []
    assert leaks(mail) == []


def test_the_settings_as_django_shows_them_hold_no_secret(canaries: SimpleNamespace) -> None:
    shown = get_exception_reporter_filter(None).get_safe_settings()
    assert shown["RENDERS"]["BASE_URL"] == canaries.sandbox.url
    assert leaks(str(shown)) == []


def test_nothing_that_holds_a_secret_shows_it(canaries: SimpleNamespace) -> None:
    client = sume("default")
    raised_by(lambda: client.status("job_1"))
    session = client._session
    request = session.prepare_request(client_module.requests.Request("GET", SIGNED))
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    shown = [client, vars(client), session, session.headers, request, request.headers]
    shown += [conf.API_KEY, conf.REDIS_URL, redis_client(), [conf.API_KEY]]
    assert [thing for thing in shown if leaks(repr(thing))] == []


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_storage_that_raises_is_logged_without_the_address(
    database: str, canaries: SimpleNamespace, settings: Any, caplog: Any
) -> None:
    render = services.create_render("a red fox")
    engine.submit(render)
    tick = threading.Event()
    while canaries.sandbox.rules.finished_job(render.sume_job_id) is None:
        tick.wait(0.05)
    engine.make_due(render)
    engine.poll(render)
    settings.STORAGES = {**settings.STORAGES, "default": {"BACKEND": f"{__name__}.BrokenStorage"}}

    assert [step.do for step in engine.finish(render)] == ["media"]

    [record] = [record for record in caplog.records if record.exc_info]
    assert {n: leaks(t) for n, t in accounts(record.exc_info[1]).items() if leaks(t)} == {}
    assert leaks(caplog.text + json.dumps([str(event) for event in render.events.all()])) == []
    # The address is kept, for the next try.
    assert "signature=" in render.result["artifacts"][0]["url"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("debug", [True, False])
def test_a_view_that_fails_shows_no_address(
    database: str, canaries: SimpleNamespace, settings: Any, monkeypatch: Any, debug: bool
) -> None:
    settings.DEBUG = debug
    owner = get_user_model().objects.create_user("ann")
    now = timezone.now()
    artifact = {"url": SIGNED, "type": "image", "content_type": "image/png", "file": "a.png"}
    render = RenderJob.objects.create(
        prompt="a boat",
        created_by=owner,
        status="completed",
        sume_job_id="job_1",
        submitted_at=now,
        finished_at=now,
        result={"artifacts": [artifact]},
    )
    monkeypatch.setattr(FileSystemStorage, "open", broken)
    browser = Client(raise_request_exception=False)
    browser.force_login(owner)

    reply = browser.get(reverse("renders:artifact", args=[render.pk, 0]))

    assert reply.status_code == 500
    assert leaks(reply.content.decode(), (KEY, PASSWORD, "canary-5igned")) == []
