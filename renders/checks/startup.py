"""What a process does before it begins: refuse unsafe settings."""

import logging

from django.conf import settings
from django.core.checks import CheckMessage, run_checks
from django.core.exceptions import ImproperlyConfigured

# Whoever writes an entry point of his own needs both.
from renders.conf.destination import say_where_renders_go as say_where_renders_go

logger = logging.getLogger(__name__)
WHAT_TO_DO = (
    "Nothing was started. `python manage.py check` shows all of it, docs/configuration.md "
    "explains each id."
)


def refuse_unsafe_settings() -> None:
    """Raise `ImproperlyConfigured` if a system check finds an error; log its warnings.

    For processes that no command of Django's starts: those run the checks themselves. In debug
    mode, nothing is refused. Silenced checks count as passed.
    """
    if settings.DEBUG:
        return
    found = [message for message in run_checks() if not message.is_silenced()]
    serious = [message for message in found if message.is_serious()]
    if serious:
        raise ImproperlyConfigured(
            "\n".join(["unsafe settings.", *map(_told, serious), WHAT_TO_DO])
        )
    for message in found:
        logger.warning(_told(message))


def _told(message: CheckMessage) -> str:
    return str(message).removeprefix("?: ")  # what Django writes where there is no object
