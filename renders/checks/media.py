"""Checks of where finished pictures and clips are stored."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error

from renders.checks.celery import used, value_of
from renders.conf import conf

FILES = "django.core.files.storage.FileSystemStorage"
MEMORY = "django.core.files.storage.InMemoryStorage"


def faults() -> Iterator[CheckMessage]:
    """Faults that would lose media, show them to anybody, or cut off their download."""
    if conf.MEDIA_STORAGE not in settings.STORAGES:
        yield Error(
            "MEDIA_STORAGE names a storage that STORAGES does not hold.",
            hint=f"Set RENDERS_MEDIA_STORAGE to one of: {', '.join(sorted(settings.STORAGES))}.",
            id="renders.E010",
        )
    elif conf.SAVE_MEDIA and not settings.DEBUG:
        yield from _storage_faults()
    limit = value_of("task_soft_time_limit") if used() else None
    if limit is not None and limit <= conf.MEDIA_TIMEOUT_SECONDS:
        yield Error(
            "MEDIA_TIMEOUT_SECONDS reaches Celery's time limit: "
            "a long download would be cut off by it.",
            hint="Lower RENDERS_MEDIA_TIMEOUT_SECONDS, or raise CELERY_TASK_SOFT_TIME_LIMIT "
            "and CELERY_TASK_TIME_LIMIT.",
            id="renders.E011",
        )


def _storage_faults() -> Iterator[CheckMessage]:
    storage: dict[str, Any] = settings.STORAGES[conf.MEDIA_STORAGE]
    backend = storage.get("BACKEND")
    if backend == MEMORY:
        yield Error(
            "Finished pictures would be kept in memory: gone with the worker that stored them.",
            hint="Name another storage in RENDERS_MEDIA_STORAGE, or another BACKEND for it in "
            "STORAGES.",
            id="renders.E055",
        )
    if backend != FILES:
        return
    folder = (storage.get("OPTIONS") or {}).get("location") or settings.MEDIA_ROOT
    if not folder:
        yield Error(
            "MEDIA_ROOT is empty: finished pictures would be scattered over the folder in which "
            "each worker was started.",
            hint="Set DJANGO_MEDIA_ROOT to a folder that workers and web server share.",
            id="renders.E053",
        )
    elif settings.STATIC_ROOT and _within(folder, settings.STATIC_ROOT):
        yield Error(
            "MEDIA_ROOT lies in STATIC_ROOT, whose files are served to everybody: "
            "so would be everybody's pictures.",
            hint="Set DJANGO_MEDIA_ROOT to a folder outside of it.",
            id="renders.E054",
        )


def _within(folder: str | Path, other: str | Path) -> bool:
    return Path(folder).resolve().is_relative_to(Path(other).resolve())
