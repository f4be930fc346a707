"""What this process depends on outside its servers: settings, packages, disks, storage, Sume."""

import platform
import shutil
import time
import uuid
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from django.conf import settings as django_settings
from django.core.checks import run_checks
from django.core.files.base import ContentFile

from renders.conf import conf, destination, workspaces
from renders.conf.destination import Billing
from renders.conf.workspaces import Workspace
from renders.exceptions import BackOff, OutcomeUnknown, Paused, SumeError, Unreachable
from renders.health import database
from renders.health.findings import Finding, Level
from renders.media.storage import storage
from renders.sume.client import SumeClient

PACKAGES = ("django", "celery", "kombu", "redis", "psycopg", "requests")
OLDEST_CELERY = (5, 7)
FULL_BYTES, LOW_BYTES = 100_000_000, 1_000_000_000
# Django's levels for messages of system checks.
DJANGOS_WARNING, DJANGOS_ERROR = 30, 40
# Left out of the settings: the doctor reports the destination separately.
DESTINATION = "renders.I069"
# The status of a reply that means "no credit left".
NO_MONEY = 402
# The longest time-out of the request for the balance.
LONGEST_SECONDS = 8.0
# The Date header of a reply has whole seconds.
DATE_GRAIN_SECONDS = 1.0


def settings() -> list[Finding]:
    """The messages of `manage.py check`; outside debug mode, of `check --deploy`."""
    findings = []
    for message in run_checks(include_deployment_checks=not django_settings.DEBUG):
        if not message.is_silenced() and message.id != DESTINATION:
            grave = Level.ERROR if message.level >= DJANGOS_ERROR else Level.WARNING
            grave = grave if message.level >= DJANGOS_WARNING else Level.INFO
            hint = " ".join(str(message.hint or "See Django's page on system checks.").split())
            first = " ".join(str(message.msg).split()).partition(". ")[0].rstrip(".")
            said = f"{first} ({message.id or 'no id'})."
            findings.append(Finding(said, "setting", hint, grave))
    return findings or [Finding("The checks find nothing.")]


def versions() -> list[Finding]:
    """The versions of Python and of the main packages; an old Celery is an error."""
    numbers = {name: installed(name) for name in PACKAGES}
    listed = ", ".join(f"{name} {number}" for name, number in numbers.items() if number)
    old = tuple(map(int, numbers["celery"].split(".")[:2])) < OLDEST_CELERY
    said = f"Python {platform.python_version()}, {listed}."
    return [Finding(said, "celery-old" if old else "")]


def installed(name: str) -> str:
    """The version of a package; empty if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def media() -> list[Finding]:
    """Whether the storage of media can store, read and delete a file."""
    if not conf.SAVE_MEDIA:
        return [Finding("Media are not stored (`SAVE_MEDIA`).")]
    content = uuid.uuid4().bytes
    try:
        where = storage()
        name = where.save(f"renders/health-{uuid.uuid4()}.txt", ContentFile(content))
        try:
            with where.open(name) as file:
                whole = file.read() == content
        finally:
            where.delete(name)
    except Exception as error:  # noqa: BLE001 (a storage raises anything; its text may hold secrets)
        why = (error.strerror if isinstance(error, OSError) else "") or "its own error"
        said = f"The storage of media takes no file ({type(error).__name__}: {why})."
        return [Finding(said, "storage-fails")]
    if not whole:
        said = "The storage of media gives back another file than it was given."
        return [Finding(said, "storage-fails")]
    return [Finding("The storage of media takes files.")]


def disks() -> list[Finding]:
    """The free space on each disk that this process writes to."""
    findings = []
    for name, path in places().items():
        free = shutil.disk_usage(path).free
        said = f"{free / 1e9:,.1f} GB free for the {name}."
        full, low = free < FULL_BYTES, free < LOW_BYTES
        findings.append(Finding(said, "disk-full" if full else "disk-low" if low else ""))
    return findings or [Finding("Nothing is kept on disks of this machine.")]


def places() -> dict[str, Path]:
    """The folders on this machine that hold data, by what they hold."""
    folders = {}
    database = django_settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3") and Path(str(database["NAME"])).is_absolute():
        folders["database"] = Path(str(database["NAME"])).parent
    if conf.SAVE_MEDIA and (location := getattr(storage(), "location", "")):
        folders["media"] = Path(location)
    return {name: _existing(path) for name, path in folders.items()}


def _existing(path: Path) -> Path:
    """The folder, or its nearest parent that exists."""
    return next((folder for folder in (path, *path.parents) if folder.exists()), Path("/"))


def destinations() -> list[Finding]:
    """Each host that renders go to, and whether it bills. Sends no request."""
    return [
        Finding(host.sentence, grave=Level.INFO if host.billing is Billing.UNKNOWN else None)
        for host in destination.destinations()
    ]


def account() -> list[Finding]:
    """The answer to `GET /v1/balance` for each workspace's key.

    Every finding names the host: it may be a stand-in.
    """
    names = workspaces.names()
    by_workspace = {name: _account(workspaces.get(name)) for name in names}
    if len(names) == 1:
        return by_workspace[names[0]]
    return [
        replace(finding, said=f"{name}: {finding.said}")
        for name, findings in by_workspace.items()
        for finding in findings
    ]


def _account(workspace: Workspace) -> list[Finding]:
    host = destination.of(workspace).host
    if not workspace.api_key:
        return [Finding(f"No API key for {host} is set.", "key-missing")]
    timeout = min(conf.REQUEST_TIMEOUT_SECONDS, LONGEST_SECONDS)
    asked = time.time()
    try:
        balance = SumeClient(workspace.api_key, workspace.base_url, timeout=timeout).balance()
    except Paused as error:
        code = "no-credit" if error.status == NO_MONEY else "key-refused"
        return [Finding(_said(host, error), code)]
    except (OutcomeUnknown, Unreachable) as error:
        return [Finding(_said(host, error), "sume-away")]
    except BackOff as error:
        return [Finding(_said(host, error), "sume-busy")]
    except SumeError:
        return [Finding(f"{host} answers, and does not tell the balance.")]
    clock = []
    if balance.at:
        at = balance.at.timestamp()
        clock.append(database.compared(host, at, asked, time.time(), grain=DATE_GRAIN_SECONDS))
    if balance.usd_micros is None:
        return [Finding(f"{host} takes the key, and tells no balance."), *clock]
    left = f"{balance.usd_micros / 1_000_000:,.2f} USD"
    said = f"{host} takes the key; left to spend: {left}."
    return [Finding(said, "" if balance.usd_micros > 0 else "no-credit"), *clock]


def _said(host: str, error: SumeError) -> str:
    return f"{host}: {str(error).rstrip('.')} ({error.code or error.status})."
