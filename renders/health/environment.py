"""This machine: settings, versions, the storage of media, disks.

Sume: which host that is, whether it answers, takes the key, and has money of ours.

The host is named in all findings: it may be a stand-in.
"""

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
# Django's names for how bad a message of its checks is.
DJANGOS_WARNING, DJANGOS_ERROR = 30, 40
# The doctor has a part of its own for it.
DESTINATION = "renders.I069"


def settings() -> list[Finding]:
    """What `manage.py check` says; outside debug mode, what `--deploy` adds."""
    told = run_checks(include_deployment_checks=not django_settings.DEBUG)
    found = []
    for one in told:
        if not one.is_silenced() and one.id != DESTINATION:
            grave = Level.ERROR if one.level >= DJANGOS_ERROR else Level.WARNING
            grave = grave if one.level >= DJANGOS_WARNING else Level.INFO
            hint = " ".join(str(one.hint or "See Django's page on system checks.").split())
            first = " ".join(str(one.msg).split()).partition(". ")[0].rstrip(".")
            said = f"{first} ({one.id or 'no id'})."
            found.append(Finding(said, "setting", hint, grave))
    return found or [Finding("The checks find nothing.")]


def versions() -> list[Finding]:
    """What runs here."""
    known = {name: installed(name) for name in PACKAGES}
    told = ", ".join(f"{name} {number}" for name, number in known.items() if number)
    old = tuple(map(int, known["celery"].split(".")[:2])) < OLDEST_CELERY
    said = f"Python {platform.python_version()}, {told}."
    return [Finding(said, "celery-old" if old else "")]


def installed(name: str) -> str:
    """The version of a package; empty where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def media() -> list[Finding]:
    """Whether a file can be stored, read and deleted where finished media go."""
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
    """How much room is left where this process writes."""
    found = []
    for name, path in places().items():
        free = shutil.disk_usage(path).free
        said = f"{free / 1e9:,.1f} GB free for the {name}."
        full, low = free < FULL_BYTES, free < LOW_BYTES
        found.append(Finding(said, "disk-full" if full else "disk-low" if low else ""))
    return found or [Finding("Nothing is kept on disks of this machine.")]


def places() -> dict[str, Path]:
    """What is kept on this machine, and where."""
    found = {}
    database = django_settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3") and Path(str(database["NAME"])).is_absolute():
        found["database"] = Path(str(database["NAME"])).parent
    if conf.SAVE_MEDIA and (location := getattr(storage(), "location", "")):
        found["media"] = Path(location)
    return {name: _there(path) for name, path in found.items()}


def _there(path: Path) -> Path:
    """The folder itself, or the nearest that exists already."""
    return next((one for one in (path, *path.parents) if one.exists()), Path("/"))


NO_MONEY = 402
LONGEST_SECONDS = 8.0
DATE_GRAIN_SECONDS = 1.0


def destinations() -> list[Finding]:
    """Each host that renders go to, and whether it bills. No server is asked."""
    return [
        Finding(one.sentence, grave=Level.INFO if one.billing is Billing.UNKNOWN else None)
        for one in destination.destinations()
    ]


def account() -> list[Finding]:
    """What `GET /v1/balance` tells, with the key of each workspace."""
    names = workspaces.names()
    found = {name: _account(workspaces.get(name)) for name in names}
    if len(names) == 1:
        return found[names[0]]
    return [
        replace(one, said=f"{name}: {one.said}") for name, told in found.items() for one in told
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
    found = []
    if balance.at:
        at = balance.at.timestamp()
        found.append(database.compared(host, at, asked, time.time(), grain=DATE_GRAIN_SECONDS))
    if balance.usd_micros is None:
        return [Finding(f"{host} takes the key, and tells no balance."), *found]
    left = f"{balance.usd_micros / 1_000_000:,.2f} USD"
    said = f"{host} takes the key; left to spend: {left}."
    return [Finding(said, "" if balance.usd_micros > 0 else "no-credit"), *found]


def _said(host: str, error: SumeError) -> str:
    return f"{host}: {str(error).rstrip('.')} ({error.code or error.status})."
