"""Times and counts of `RENDERS`: readable, and in the right order."""

from collections.abc import Iterator

from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured

from renders.conf import Conf, Setting, conf

ABOVE_ZERO = (
    "REQUEST_TIMEOUT_SECONDS",
    "MIN_POLL_SECONDS",
    "SWEEP_SECONDS",
    "SWEEP_BATCH",
    "PAUSE_SECONDS",
    "MAX_PAUSE_SECONDS",
    "WEBHOOK_MAX_AGE_SECONDS",
    "MEDIA_TIMEOUT_SECONDS",
    "READS_AT_ONCE",
)


def unreadable() -> list[CheckMessage]:
    """Each setting whose value is of no use; with one of these, nothing else can be checked."""
    found: list[CheckMessage] = []
    for name, setting in vars(Conf).items():
        if isinstance(setting, Setting):
            try:
                getattr(conf, name)
            except ImproperlyConfigured as error:
                found.append(Error(str(error), hint=setting.help, id="renders.E001"))
    return found


def limit_faults() -> Iterator[CheckMessage]:
    """Where one of them makes another useless."""
    if conf.MIN_POLL_SECONDS > conf.MAX_POLL_SECONDS or conf.MAX_POLL_SECONDS <= 0:
        yield Error(
            "MIN_POLL_SECONDS is larger than MAX_POLL_SECONDS, or that is 0.",
            hint="Set RENDERS_MIN_POLL_SECONDS below RENDERS_MAX_POLL_SECONDS.",
            id="renders.E003",
        )
    if idle := [name for name in ABOVE_ZERO if not getattr(conf, name)]:
        yield Error(
            f"Must be above 0: {', '.join(idle)}.",
            hint="Nothing would be sent or taken, or without a pause.",
            id="renders.E008",
        )
    if conf.REAP_AFTER_SECONDS <= conf.REQUEST_TIMEOUT_SECONDS:
        yield Error(
            "REAP_AFTER_SECONDS is not longer than REQUEST_TIMEOUT_SECONDS: "
            "a submit still under way would be taken for dead.",
            hint="Raise RENDERS_REAP_AFTER_SECONDS.",
            id="renders.E005",
        )
    if not conf.LEASE_MARGIN_SECONDS:
        yield Error(
            "LEASE_MARGIN_SECONDS is 0: a lease would not outlast REQUEST_TIMEOUT_SECONDS, "
            "and a job would be read twice at once.",
            hint="Set RENDERS_LEASE_MARGIN_SECONDS to some seconds, for instance 15.",
            id="renders.E035",
        )
