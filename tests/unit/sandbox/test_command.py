"""`manage.py sumesandbox` as a process."""

import io
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError

from renders.conf import conf, networks
from renders.conf.destination import Billing, destinations
from renders.management.commands.sumesandbox import Command
from renders.sandbox import Sandbox

from .support import Caller

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def command(tmp_path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "project.settings",
        "DJANGO_DEBUG": "1",
        "DJANGO_STATE_DIR": str(tmp_path),
        # Nothing listens there: the command needs neither database nor Redis.
        "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none",
        "REDIS_URL": "redis://127.0.0.1:1/0",
    }
    process = subprocess.Popen(
        [sys.executable, "manage.py", "sumesandbox", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_stop(tmp_path, number):
    named = ("--avatar", "@mara", "--avatar", "vera")
    with command(tmp_path, "--port", "0", "--key", "right", *named) as process:
        first = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", first)
        assert found, process.stderr.read()
        url = found.group()
        caller = Caller(url)
        with caller.session:
            assert caller.get("/v1/balance").status_code == 401
            assert caller.get("/v1/balance", headers={"Authorization": "Bearer right"}).ok
            own = {"Authorization": "", "x-api-key": "right"}
            avatars = caller.get("/v1/avatars?status=ready", headers=own)
        process.send_signal(number)
        rest, errors = process.stdout.read(), process.stderr.read()
        process.wait(timeout=10)
    assert "stand-in" in rest and "nothing is billed" in rest
    assert f"SUME_BASE_URL={url} SUME_API_KEY=" in rest
    assert f'RENDERS |= {{"BASE_URL": "{url}", ' in rest
    assert "right" not in first + rest
    assert "Stopped." in rest
    assert [one["handle"] for one in avatars.json()["data"]["avatars"]] == ["vera", "mara"]
    assert (process.returncode, "Traceback" in errors) == (0, False)


def printed(url: str, beginning: str, key: str | None = None) -> str:
    """The line that begins so, of those that it prints once it listens."""
    out = io.StringIO()
    Command(stdout=out)._greet(url, {"key": key, "avatar": None})
    [line] = [line.strip() for line in out.getvalue().splitlines() if beginning in line]
    return line


@pytest.mark.parametrize("url", ["http://127.0.0.1:8999", "http://[::1]:8999"])
def test_what_it_prints_for_the_environment_leads_this_project_there(monkeypatch, url):
    for word in shlex.split(printed(url, "SUME_BASE_URL=")):
        monkeypatch.setenv(*word.split("=", 1))

    told = runpy.run_path(str(ROOT / "project/settings.py"))["RENDERS"]

    assert (told["BASE_URL"], told["API_KEY"]) == (url, "anything")
    assert told["MEDIA_PRIVATE_HOSTS"] == urlsplit(url).hostname


@pytest.mark.parametrize("url", ["http://127.0.0.1:8999", "http://[::1]:8999"])
def test_what_it_prints_for_settings_leads_an_own_project_there(settings, monkeypatch, url):
    monkeypatch.delenv("SUME_BASE_URL", raising=False)
    own = {"RENDERS": {"API_KEY": "sk-real", "REDIS_URL": "redis://own/0"}}

    exec(printed(url, "RENDERS |= "), own)  # noqa: S102  (as a person pastes it)
    settings.RENDERS = own["RENDERS"]

    assert (url, "anything", "redis://own/0") == (conf.BASE_URL, conf.API_KEY, conf.REDIS_URL)
    assert networks.find(urlsplit(url).hostname, 8999, conf.private_hosts)
    assert [one.billing for one in destinations()] == [Billing.STAND_IN]


def test_a_key_that_it_was_given_is_not_printed():
    for beginning in ("SUME_BASE_URL=", "RENDERS |= "):
        line = printed("http://127.0.0.1:8999", beginning, key="s3cret")
        assert "s3cret" not in line and "<the key you gave>" in line


def test_it_prints_how_to_make_sure():
    assert "rendersdoctor" in printed("http://127.0.0.1:8999", "To make sure")


def test_a_busy_port_says_what_to_do():
    with Sandbox() as sandbox:
        port = sandbox.url.rsplit(":", 1)[1]
        with pytest.raises(CommandError, match="--port 0 picks a free one"):
            run("--port", port)


def test_an_address_that_is_not_here_says_what_to_check():
    with pytest.raises(CommandError, match="Check --host"):
        run("--host", "host.invalid", "--port", "0")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--port", "65536", "a port from 0 to 65535"),
        ("--port", "x", "a port from 0 to 65535"),
        ("--queued-seconds", "-1", "0 or more"),
        ("--processing-seconds", "nan", "0 or more"),
        ("--poll-seconds", "0", "above 0"),
        ("--writes-per-minute", "0", "1 or more"),
        ("--processing", "0", "1 or more"),
        ("--queued", "1.5", "0 or more"),
        ("--fault-rate", "2", "between 0 and 1"),
        ("--key", " ", "must not be empty"),
        ("--avatar", "a b", "the handle of an avatar"),
        ("--webhook-secret", " ", "must not be empty"),
    ],
)
def test_a_bad_option_is_explained(option, value, message):
    with pytest.raises(CommandError, match=message):
        run(option, value)


def run(*arguments: str) -> None:
    """Run the command in this process, as Django's own `call_command` would."""
    parser = Command().create_parser("manage.py", "sumesandbox")
    options = vars(parser.parse_args(list(arguments)))
    Command().handle(**options)
