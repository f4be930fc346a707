"""What a process does before its own work: refuse unsafe settings."""

import logging

from django.conf import settings
from django.core.checks import CheckMessage, run_checks
from django.core.exceptions import ImproperlyConfigured

# Exported here, because an entry point needs both.
from renders.conf.destination import say_where_renders_go as say_where_renders_go

logger = logging.getLogger(__name__)
WHAT_TO_DO = (
    "Nothing was started. `python manage.py check` shows all of it, docs/configuration.md "
    "explains each id."
)


def refuse_unsafe_settings() -> None:
    """Raise `ImproperlyConfigured` if a system check finds an error; log its warnings.

    For processes that are not started by a Django command, since commands run the checks
    themselves. Debug mode refuses nothing. Silenced checks count as passed.
    """
    if settings.DEBUG:
        return
    messages = [message for message in run_checks() if not message.is_silenced()]
    serious = [message for message in messages if message.is_serious()]
    if serious:
        raise ImproperlyConfigured(
            "\n".join(["unsafe settings.", *map(_words, serious), WHAT_TO_DO])
        )
    for message in messages:
        logger.warning(_words(message))


def _words(message: CheckMessage) -> str:
    return str(message).removeprefix("?: ")  # Django writes this if there is no object
