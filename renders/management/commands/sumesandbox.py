"""`manage.py sumesandbox`: the stand-in for the Sume API as a server of its own."""

import argparse
import contextlib
import errno
import json
import shlex
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from django.core.management.base import BaseCommand, CommandError, CommandParser

from renders.management.arguments import (
    count,
    count_or_none,
    port_number,
    seconds,
    share,
    some_seconds,
)
from renders.sandbox import Options, Sandbox
from renders.sandbox.values import bare, handle

DEFAULTS = Options()
# What the app's settings are called in the environment of this repository's project.
VARIABLES = {
    "BASE_URL": "SUME_BASE_URL",
    "API_KEY": "SUME_API_KEY",
    "MEDIA_PRIVATE_HOSTS": "RENDERS_MEDIA_PRIVATE_HOSTS",
}
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def api_key(text: str) -> str:
    """An argparse type: text that is not empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be empty; leave --key out to let any key in")
    return text.strip()


def webhook_secret(text: str) -> str:
    """An argparse type: text that is not empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be empty; leave it out to send no webhooks")
    return text.strip()


def avatar_handle(text: str) -> str:
    """An argparse type: the handle of an avatar, with or without `@`."""
    for _, message in handle(text, ""):
        raise argparse.ArgumentTypeError(message)
    return bare(text)


class Command(BaseCommand):
    """Serve the sandbox until Ctrl-C or SIGTERM. Needs no database and no Redis."""

    help = "Run a stand-in for the Sume API on this machine. It bills nothing."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--host", default="127.0.0.1", help="Address to listen on (127.0.0.1).")
        add("--port", type=port_number, default=8999, help="Port; 0 picks a free one (8999).")
        add(
            "--queued-seconds",
            type=seconds,
            default=DEFAULTS.queued_seconds,
            help="Least time a job waits (%(default)s).",
        )
        add(
            "--processing-seconds",
            type=seconds,
            default=DEFAULTS.processing_seconds,
            help="Time a job is processed (%(default)s).",
        )
        add(
            "--poll-seconds",
            type=some_seconds,
            default=DEFAULTS.poll_seconds,
            help="Greatest next_poll_after_seconds (%(default)s).",
        )
        add(
            "--writes-per-minute",
            type=count,
            default=DEFAULTS.writes_per_minute,
            help="POSTs a minute per API key; reads get 40 times that (%(default)s).",
        )
        add(
            "--processing",
            type=count,
            default=DEFAULTS.processing_limit,
            help="Jobs processed at once (%(default)s).",
        )
        add(
            "--queued",
            type=count_or_none,
            default=DEFAULTS.queued_limit,
            help="Jobs that may wait at once (%(default)s).",
        )
        add(
            "--fault-rate",
            type=share,
            default=DEFAULTS.fault_rate,
            help="Share of requests that meet a random fault (%(default)s).",
        )
        add("--seed", type=int, default=DEFAULTS.seed, help="Seed of those faults (%(default)s).")
        add(
            "--avatar",
            action="append",
            type=avatar_handle,
            help="Handle of an avatar that is ready from the start; can be repeated (demo).",
        )
        add("--key", type=api_key, default=None, help="Let only this API key in (any).")
        add(
            "--webhook-secret",
            type=webhook_secret,
            default=None,
            help="Sign webhooks with this secret (without one, none are sent).",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        sandbox = Sandbox(
            options["port"],
            options["host"],
            queued_seconds=options["queued_seconds"],
            processing_seconds=options["processing_seconds"],
            poll_seconds=options["poll_seconds"],
            writes_per_minute=options["writes_per_minute"],
            processing_limit=options["processing"],
            queued_limit=options["queued"],
            fault_rate=options["fault_rate"],
            seed=options["seed"],
            avatars=tuple(options["avatar"] or DEFAULTS.avatars),
            key=options["key"],
            webhook_secret=options["webhook_secret"],
        )
        with _signals_interrupt():
            try:
                self._start(sandbox, f"{options['host']}:{options['port']}")
                self._greet(sandbox.url, options)
                while True:
                    time.sleep(3600)
            except KeyboardInterrupt:
                self._say("Stopped. Its jobs are forgotten.")
            finally:
                sandbox.stop()

    def _start(self, sandbox: Sandbox, address: str) -> None:
        try:
            sandbox.start()
        except OSError as error:
            raise CommandError(_advice(error, address)) from error

    def _greet(self, url: str, options: dict[str, Any]) -> None:
        own = {
            "BASE_URL": url,
            "API_KEY": "<the key you gave>" if options["key"] else "anything",
            "MEDIA_PRIVATE_HOSTS": urlsplit(url).hostname,
        }
        variables = (f"{VARIABLES[name]}={shlex.quote(str(value))}" for name, value in own.items())
        # At once, so that a reader of the first line gets the others even if a signal follows.
        self._say(
            f"The Sume sandbox is listening on {url}\n"
            "It is a stand-in: it makes no real pictures, and nothing is billed.\n"
            f"Avatars that are ready: {', '.join(options['avatar'] or DEFAULTS.avatars)}\n"
            "For this repository's project, set in the environment:\n"
            f"  {' '.join(variables)}\n"
            "For a project of your own, add to its settings, below RENDERS:\n"
            f"  RENDERS |= {json.dumps(own)}\n"
            "Restart the app. To make sure: `python manage.py rendersdoctor` names the host.\n"
            "Stop it with Ctrl-C."
        )

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        # Whoever started us through a pipe waits for the address.
        self.stdout.flush()


@contextlib.contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Let SIGTERM and SIGINT raise KeyboardInterrupt; afterwards as before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # SIGINT too: a shell that starts us in the background lets it be ignored.
    before = {number: signal.signal(number, _interrupt) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _advice(error: OSError, address: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"{address} is in use already. Stop what listens there, or choose another port with "
            "--port; --port 0 picks a free one."
        )
    if error.errno == errno.EACCES:
        return f"{address} is not allowed for this user. Choose a port above 1023 with --port."
    return f"Cannot listen on {address}: {error.strerror or error}. Check --host and --port."
