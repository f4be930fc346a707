"""The app's settings: one dict `RENDERS` in Django's settings, read at use.

Each value may have its own type or be the text of an environment variable.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, overload

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from renders.conf import parsers
from renders.conf.networks import Private, read_private
from renders.redaction import Hidden

T = TypeVar("T")


class Setting(Generic[T]):
    """One entry of `RENDERS`: a default, a parser, and a line of help."""

    def __init__(self, default: T, parse: Callable[[object], T], help: str) -> None:
        self.default = default
        self.parse = parse
        self.help = help

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "Setting[T]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        # No variable holds all of `RENDERS`: a traceback with variables would show the API key.
        if self.name not in getattr(settings, "RENDERS", {}):
            return self.default
        try:
            return self.parse(settings.RENDERS[self.name])
        except (TypeError, ValueError) as error:
            # The value stays out of the message: it may be a secret in the wrong place.
            raise ImproperlyConfigured(
                f'RENDERS["{self.name}"] (RENDERS_{self.name} in the environment): {error}.'
            ) from None


class Conf:
    """All settings of the app: `Conf.NAME` is the `Setting`, `conf.NAME` its present value."""

    API_KEY = Setting[str](
        Hidden(""), parsers.secret, "Sume's API key (environment: SUME_API_KEY)."
    )
    BASE_URL = Setting(
        "https://api.sume.com", parsers.text, "Where the API lives (environment: SUME_BASE_URL)."
    )
    REDIS_URL = Setting[str](
        Hidden("redis://127.0.0.1:6379/0"), parsers.redis_address, "Redis for leases and the gate."
    )

    SCHEDULER = Setting(
        "countdown",
        parsers.scheduler,
        "What has due reads made: `countdown` (a Celery message each), `sortedset` (a sorted set "
        "in Redis), `database` (`runrenders`: neither Celery nor Redis).",
    )
    TICKS = Setting(
        1,
        parsers.count,
        "With `sortedset`: Celery tasks that read what is due; 0 with `pollrenders`.",
    )
    READS_AT_ONCE = Setting(
        300,
        parsers.count,
        "Most reads that one process has under way, and connections it keeps for them.",
    )

    REQUEST_TIMEOUT_SECONDS = Setting(
        30.0, parsers.seconds, "Overall deadline of one HTTP request to Sume, connecting included."
    )
    LEASE_MARGIN_SECONDS = Setting(
        15.0,
        parsers.seconds,
        "Added to the time-out for the lease's life and before a poll has stopped.",
    )
    DEFAULT_POLL_SECONDS = Setting(
        15.0, parsers.seconds, "Wait before the next read where Sume's reply names none."
    )
    MIN_POLL_SECONDS = Setting(1.0, parsers.seconds, "Shortest wait between two reads of one job.")
    MAX_POLL_SECONDS = Setting(
        300.0, parsers.seconds, "Longest wait; must stay below the broker's visibility time-out."
    )
    REAP_AFTER_SECONDS = Setting(
        600.0, parsers.seconds, "A row `submitting` for longer goes back to `pending`."
    )
    SWEEP_SECONDS = Setting(
        30.0, parsers.seconds, "Period of the sweep that puts back what stopped."
    )
    SWEEP_BATCH = Setting(500, parsers.count, "Most rows of one sort that one sweep puts back.")
    NOT_FOUND_GRACE_SECONDS = Setting(
        300.0,
        parsers.seconds,
        "How long Sume may answer 404 for an accepted job before it counts as lost.",
    )
    INSTALLATION_ID = Setting(
        "",
        parsers.installation,
        "UUID that replaces the database's own id, from which keys follow: for a copied database.",
    )
    PLAN = Setting("free", parsers.plan, "Your plan at Sume, `free` or `pro`: sets the next two.")
    WRITES_PER_MINUTE = Setting(
        0,
        parsers.count,
        "Most POSTs in any 60 seconds, reads 40 times that; 0: the plan's (120, 300).",
    )
    MAX_IN_FLIGHT = Setting(
        0,
        parsers.count,
        "Most renders at Sume at once, overdue ones apart; 0: the plan's (Pro: 24).",
    )
    BUDGET_USD = Setting(
        0.0, parsers.dollars, "Most US dollars spent in a calendar month (UTC); 0: no limit."
    )
    USER_BUDGET_USD = Setting(
        0.0,
        parsers.dollars,
        "Most US dollars that one user's renders may cost in a month and a workspace; 0: no limit.",
    )
    PRICES = Setting[Mapping[str, float]](
        {},
        parsers.prices,
        "US dollars for one render, by kind or by kind and model: image=0.09,"
        "image:gpt-image-2=0.20.",
    )
    MODELS = Setting[tuple[str, ...]](
        (), parsers.models, "Models that renders may name, with commas between; empty: all."
    )
    WORKSPACES = Setting[Mapping[str, Mapping[str, Any]]](
        {},
        parsers.workspaces,
        "Further Sume accounts, names with commas between: see docs/workspaces.md.",
    )
    WORKSPACE_FOR = Setting(
        "",
        parsers.text,
        "Dotted path of a callable: a user's workspace, or None for the user's own.",
    )
    SECRETS_FILE = Setting(
        "", parsers.text, "JSON or TOML file with keys and secrets, read again when it changes."
    )
    FAIR = Setting(
        True,
        parsers.flag,
        "Users take turns within a level of priority (1), or oldest first of all (0).",
    )
    PAUSE_SECONDS = Setting(
        15.0,
        parsers.seconds,
        "First pause after 401, 402 or 403; doubles while the refusals go on.",
    )
    MAX_PAUSE_SECONDS = Setting(900.0, parsers.seconds, "Longest pause of all workers.")
    SUBMIT_DEADLINE_HOURS = Setting(
        24.0, parsers.hours, "A render that Sume has not taken by then fails; 0: never."
    )
    OVERDUE_HOURS = Setting(
        6.0,
        parsers.hours,
        "A job that runs longer is shown as overdue and read rarely; 0: never.",
    )
    MAX_PROMPT_LENGTH = Setting(20_000, parsers.count, "Longest prompt, in characters.")
    SAVE_MEDIA = Setting(
        True, parsers.flag, "Store the finished pictures and clips (1) or only link (0)."
    )
    MEDIA_TIMEOUT_SECONDS = Setting(60.0, parsers.seconds, "Longest download of one artifact.")
    MEDIA_MAX_BYTES = Setting(512 * 1024 * 1024, parsers.count, "Largest artifact that is stored.")
    PUBLIC_URL = Setting(
        "", parsers.web_address, "Where people reach this site: https://example.com."
    )
    FLOWER_URL = Setting(
        "", parsers.web_address, "Where people reach Flower; the admin links to it."
    )
    MEDIA_STORAGE = Setting(
        "default", parsers.text, "Which of Django's `STORAGES` keeps finished pictures and clips."
    )
    MEDIA_PRIVATE_HOSTS = Setting(
        "", parsers.hosts, "Hosts or networks that media may come from though they are not public."
    )

    WEBHOOK_SECRET = Setting[str](
        Hidden(""),
        parsers.secret,
        "Sume's secrets, with commas between (environment: SUME_WEBHOOK_SECRET).",
    )
    WEBHOOK_MAX_AGE_SECONDS = Setting(
        300.0, parsers.seconds, "An event signed longer ago, or ahead, is refused."
    )
    WEBHOOK_POLL_SECONDS = Setting(
        120.0, parsers.seconds, "Wait between reads of a job that a webhook is to announce."
    )

    ANYBODY_ADDS = Setting(
        True,
        parsers.flag,
        "Whoever is logged in may add and retry renders (1), or only with the permission "
        "`renders.add_renderjob` (0).",
    )
    MAX_WAITING_PER_USER = Setting(
        1_000,
        parsers.count,
        "Most renders that one user may have waiting through the API and the pages, staff "
        "excepted; 0: no limit.",
    )
    API_REQUESTS_PER_MINUTE = Setting(
        600, parsers.count, "Most API requests of one user; 0: no limit."
    )
    IDEMPOTENCY_HOURS = Setting(
        720.0, parsers.hours, "How long the API remembers an `Idempotency-Key`; 0: for ever."
    )

    KEEP_COMPLETED_DAYS = Setting(
        0, parsers.days, "Completed renders are deleted this long after their end; 0: never."
    )
    KEEP_FAILED_DAYS = Setting(0, parsers.days, "The same for failed renders.")
    KEEP_CANCELED_DAYS = Setting(0, parsers.days, "The same for canceled renders.")
    KEEP_MEDIA_DAYS = Setting(
        0,
        parsers.days,
        "Pictures and clips are deleted this long after the render's end; 0: never.",
    )
    KEEP_EVENTS_DAYS = Setting(
        0,
        parsers.days,
        "Lines of the timelines of ended renders are deleted after this time; 0: never.",
    )

    METRICS_TOKEN = Setting[str](
        Hidden(""),
        parsers.token,
        "What Prometheus sends to read `/metrics`; without it, staff only.",
    )

    @property
    def grace_seconds(self) -> float:
        """How many seconds a poll or finish may be late before it counts as stopped."""
        return self.REQUEST_TIMEOUT_SECONDS + self.LEASE_MARGIN_SECONDS

    @property
    def media_seconds(self) -> float:
        """How many seconds storing one artifact may take before it counts as stopped.

        It is also the life of the lease.
        """
        return self.MEDIA_TIMEOUT_SECONDS + self.REQUEST_TIMEOUT_SECONDS + self.LEASE_MARGIN_SECONDS

    @property
    def private_hosts(self) -> Private:
        """`MEDIA_PRIVATE_HOSTS`, parsed."""
        return read_private(self.MEDIA_PRIVATE_HOSTS)


conf = Conf()
