"""The Celery app of the project, whatever its name and the namespace of its settings."""

from typing import Any

from celery import current_app
from django.conf import settings


def loaded() -> bool:
    """Whether the project has one: else Celery falls back on one that is not configured."""
    return bool(current_app.fixups) or current_app.main != "default"


def name_of(setting: str) -> str:
    """How Django's settings call Celery's setting: `task_routes` is `CELERY_TASK_ROUTES`."""
    namespace = current_app.namespace if loaded() else "CELERY"
    return f"{namespace}_{setting}".upper() if namespace else setting


def value_of(setting: str) -> Any:
    """What Celery is told: by Django's settings as they are now, else by its own configuration."""
    missing = object()
    found = getattr(settings, name_of(setting), missing)
    if found is not missing:
        return found
    return current_app.conf.get(setting) if loaded() else None
