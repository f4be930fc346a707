"""System checks: a wrong setting is found at start. No network, no database."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured

from renders import ticks
from renders.conf import Conf, Setting, conf
from renders.redis_url import CLUSTER, SENTINEL, kind_of

SHORTEST_SECRET = 16
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


@register("renders", Tags.compatibility)
def check_settings(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Every setting can be read, and they fit together."""
    unreadable = _unreadable()
    if unreadable:
        return unreadable
    found: list[CheckMessage] = []
    if not conf.API_KEY:
        found.append(
            Warning(
                "No API key for Sume is set: nothing can be submitted.",
                hint="Set SUME_API_KEY; for a try, run `manage.py sumesandbox` and set any key.",
                id="renders.W001",
            )
        )
    if not settings.SECRET_KEY_FALLBACKS and not _secret_key():
        found.append(
            Error(
                "No secret key is set.",
                hint="Set DJANGO_SECRET_KEY to a long random text, "
                "or DJANGO_DEBUG=1 on a developer's machine.",
                id="renders.E002",
            )
        )
    if conf.MIN_POLL_SECONDS > conf.MAX_POLL_SECONDS or conf.MAX_POLL_SECONDS <= 0:
        found.append(
            Error(
                "MIN_POLL_SECONDS is larger than MAX_POLL_SECONDS, or that is 0.",
                hint="Set RENDERS_MIN_POLL_SECONDS below RENDERS_MAX_POLL_SECONDS.",
                id="renders.E003",
            )
        )
    idle = [name for name in ABOVE_ZERO if not getattr(conf, name)]
    if idle:
        found.append(
            Error(
                f"Must be above 0: {', '.join(idle)}.",
                hint="Nothing would be sent or taken, or without a pause.",
                id="renders.E008",
            )
        )
    visibility = _visibility_timeout()
    if visibility is not None and visibility <= conf.MAX_POLL_SECONDS:
        found.append(
            Error(
                "MAX_POLL_SECONDS reaches the broker's visibility time-out: "
                "waiting polls would be delivered twice.",
                hint="Lower RENDERS_MAX_POLL_SECONDS or raise visibility_timeout in "
                "CELERY_BROKER_TRANSPORT_OPTIONS.",
                id="renders.E004",
            )
        )
    if conf.REAP_AFTER_SECONDS <= conf.REQUEST_TIMEOUT_SECONDS:
        found.append(
            Error(
                "REAP_AFTER_SECONDS is not longer than REQUEST_TIMEOUT_SECONDS: "
                "a submit still under way would be taken for dead.",
                hint="Raise RENDERS_REAP_AFTER_SECONDS.",
                id="renders.E005",
            )
        )
    if not conf.BASE_URL.startswith(("https://", "http://")):
        found.append(
            Error(
                "SUME_BASE_URL is not an http or https address.",
                hint="For instance https://api.sume.com.",
                id="renders.E006",
            )
        )
    elif conf.BASE_URL.startswith("http://") and not settings.DEBUG:
        found.append(
            Warning(
                "SUME_BASE_URL is not https: the API key travels in the clear.",
                hint="Right for the sandbox on this machine only.",
                id="renders.W007",
            )
        )
    return [*found, *_broker_faults(), *_webhook_faults(), *_media_faults(), *_tick_faults()]


def _broker_faults() -> list[CheckMessage]:
    """Where the broker's address is one that Celery does not know."""
    kind = kind_of(str(getattr(settings, "CELERY_BROKER_URL", None) or ""))
    if kind == CLUSTER:
        return [
            Error(
                "A Redis Cluster cannot carry Celery's messages.",
                hint="Set CELERY_BROKER_URL to one Redis (redis://…, redis+sentinel://…) "
                "or to RabbitMQ (amqp://…); leases and pauses can stay in the cluster.",
                id="renders.E012",
            )
        ]
    if kind == SENTINEL:
        return [
            Error(
                "Celery spells the address of sentinels differently.",
                hint="Set CELERY_BROKER_URL to sentinel://host:26379;sentinel://host:26379 and "
                'CELERY_BROKER_TRANSPORT_OPTIONS["master_name"] to the service\'s name.',
                id="renders.E013",
            )
        ]
    return []


def _webhook_faults() -> list[CheckMessage]:
    """Where webhooks are half on: renders are polled as often as without."""
    secrets, address = conf.webhook_secrets, conf.PUBLIC_URL
    found: list[CheckMessage] = []
    if secrets and not address:
        found.append(
            Warning(
                "SUME_WEBHOOK_SECRET is set, yet Sume is not told where to send webhooks.",
                hint="Set RENDERS_PUBLIC_URL to the address of this site, "
                "for instance https://example.com.",
                id="renders.W021",
            )
        )
    if address and not secrets:
        found.append(
            Info(
                "PUBLIC_URL is set and SUME_WEBHOOK_SECRET is not: Sume sends no webhooks.",
                hint="Set SUME_WEBHOOK_SECRET to the secret of the webhook in your Sume account "
                "if you want them; without, renders are polled.",
                id="renders.I022",
            )
        )
    if secrets and address.startswith("http://") and not settings.DEBUG:
        found.append(
            Warning(
                "PUBLIC_URL is not https: Sume sends no webhooks there.",
                hint="Serve the site over https and set RENDERS_PUBLIC_URL to that address.",
                id="renders.W023",
            )
        )
    if any(len(secret) < SHORTEST_SECRET for secret in secrets):
        found.append(
            Warning(
                f"A secret in SUME_WEBHOOK_SECRET has fewer than {SHORTEST_SECRET} characters: "
                "it was cut short, or can be guessed.",
                hint="Copy it whole; commas stand between two secrets only.",
                id="renders.W024",
            )
        )
    return found


def _media_faults() -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if conf.MEDIA_STORAGE not in settings.STORAGES:
        found.append(
            Error(
                "MEDIA_STORAGE names a storage that STORAGES does not hold.",
                hint="Set RENDERS_MEDIA_STORAGE to one of: "
                f"{', '.join(sorted(settings.STORAGES))}.",
                id="renders.E010",
            )
        )
    limit = _time_limit()
    if limit is not None and limit <= conf.MEDIA_TIMEOUT_SECONDS:
        found.append(
            Error(
                "MEDIA_TIMEOUT_SECONDS reaches Celery's time limit: "
                "a long download would be cut off by it.",
                hint="Lower RENDERS_MEDIA_TIMEOUT_SECONDS, or raise CELERY_TASK_SOFT_TIME_LIMIT "
                "and CELERY_TASK_TIME_LIMIT.",
                id="renders.E011",
            )
        )
    return found


def _tick_faults() -> list[CheckMessage]:
    limit = _time_limit()
    if limit is None or conf.SCHEDULER != "sortedset" or not conf.TICKS:
        return []
    if limit > ticks.longest_seconds():
        return []
    return [
        Error(
            "REQUEST_TIMEOUT_SECONDS reaches Celery's time limit: a tick, which waits for the "
            "last reads it began, would be cut off by it.",
            hint="Raise CELERY_TASK_SOFT_TIME_LIMIT and CELERY_TASK_TIME_LIMIT above "
            f"{ticks.longest_seconds():g} s, or lower RENDERS_REQUEST_TIMEOUT_SECONDS.",
            id="renders.E025",
        )
    ]


def _time_limit() -> float | None:
    """Celery's, in seconds; None where a task may take as long as it takes."""
    return getattr(settings, "CELERY_TASK_SOFT_TIME_LIMIT", None)


def _unreadable() -> list[CheckMessage]:
    found: list[CheckMessage] = []
    for name, setting in vars(Conf).items():
        if isinstance(setting, Setting):
            try:
                getattr(conf, name)
            except ImproperlyConfigured as error:
                found.append(Error(str(error), hint=setting.help, id="renders.E001"))
    return found


def _secret_key() -> str:
    try:
        return settings.SECRET_KEY
    except ImproperlyConfigured:
        return ""


def _visibility_timeout() -> float | None:
    """The broker's, in seconds; None where the broker is not Redis or Celery's default holds."""
    options = getattr(settings, "CELERY_BROKER_TRANSPORT_OPTIONS", {})
    return options.get("visibility_timeout")
