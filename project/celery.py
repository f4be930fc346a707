"""The Celery app: `celery -A project worker`, `celery -A project beat`, `… flower`."""

import logging
import os
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import beat_init, worker_init, worker_ready
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
# For `celery -A project flower`: it must not start without a password.
os.environ.setdefault("FLOWER_CONF", str(Path(__file__).with_name("flower.py")))

app = Celery("project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

logger = logging.getLogger(__name__)


@worker_init.connect
@beat_init.connect
def refuse_unsafe_settings(**kwargs: Any) -> None:
    """End with status 1 and a text that says why, before anything is taken or sent."""
    from renders.conf import startup  # here, since apps are not there yet when this file is read

    try:
        startup.refuse_unsafe_settings()
    except ImproperlyConfigured as error:
        raise SystemExit(f"Not started: {error}") from None


@worker_ready.connect
def warn_of_sqlite(sender: Any, **kwargs: Any) -> None:
    """Greenlets share one thread, and SQLite makes it wait for a lock that one of them holds."""
    if sender.pool.is_green and settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        logger.warning(
            "SQLite and greenlets: a receiver that waits (for the network, say) stops this whole "
            'worker, and writes fail with "database is locked". Use PostgreSQL, or -P threads.'
        )
