"""How log lines look: for people, or a JSON object each (`DJANGO_LOG_FORMAT=json`)."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

from renders.telemetry.log_context import FIELDS


class JsonLines(logging.Formatter):
    """One JSON object for each record: only what is named here, whatever else it carries."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        told |= {name: word for name in FIELDS if (word := getattr(record, name, ""))}
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False)


def logging_config(form: str) -> dict[str, Any]:
    """Django's `LOGGING`: all lines to standard error, `line` or `json`."""
    console = {"handlers": ["console"], "level": "INFO"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {
            "context": {"()": "renders.telemetry.log_context.Context"},
            "outside_debug": {"()": "django.utils.log.RequireDebugFalse"},
        },
        "formatters": {
            "line": {
                "format": "{asctime} {levelname} {name}: {message}{context}",
                "style": "{",
            },
            "json": {"()": "project.logs.JsonLines"},
        },
        "handlers": {
            "console": {
                "class": "logging.StreamHandler",
                "formatter": "json" if form.strip().lower() == "json" else "line",
                "filters": ["context"],
            },
            # As Django has it; its lines for the console come once, as all others do.
            "mail_admins": {
                "class": "django.utils.log.AdminEmailHandler",
                "level": "ERROR",
                "filters": ["outside_debug"],
            },
        },
        "root": console,
        # Celery would give these a handler of its own, and Django's own shows no context.
        "loggers": {
            "celery.task": {**console, "propagate": False},
            "django.server": {**console, "propagate": False},
            "django": {"handlers": ["mail_admins"], "level": "INFO"},
        },
    }
