"""What a process does before it begins: refuse unsafe settings, and say where renders go."""

import logging

from django.conf import settings
from django.core.checks import CheckMessage, run_checks
from django.core.exceptions import ImproperlyConfigured

from renders.destination import Billing, destinations

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


def say_where_renders_go() -> None:
    """Log one line with each host that renders are sent to, and whether it bills.

    It is a warning if that is a surprise: a bill in debug mode, or anything but Sume outside it.
    It is one too where INFO is not logged (the default of Celery and Django), to be seen at all.
    """
    try:
        known = destinations()
    except ImproperlyConfigured as error:
        logger.warning("Where renders go is unknown: %s", error)
        return
    expected = Billing.STAND_IN if settings.DEBUG else Billing.BILLED
    surprising = any(one.has_key and one.billing is not expected for one in known)
    seen = logger.isEnabledFor(logging.INFO)
    level = logging.INFO if seen and not surprising else logging.WARNING
    logger.log(level, "%s", " ".join(one.sentence for one in known))


def _told(message: CheckMessage) -> str:
    return str(message).removeprefix("?: ")  # what Django writes where there is no object
