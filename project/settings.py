"""Settings, all from the environment; see the table in README.md."""

import os
from pathlib import Path

import dj_database_url

from project.environment import flag, number, words
from project.logs import logging_config
from project.workspaces import workspaces_in
from renders import celery_settings
from renders.redaction import Hidden

BASE_DIR = Path(__file__).resolve().parent.parent
# Whatever a run leaves behind (database, media, demo) lives in this one ignored folder.
STATE_DIR = Path(os.environ.get("DJANGO_STATE_DIR") or BASE_DIR / ".state")

DEBUG = flag("DJANGO_DEBUG")
# Left empty, Django itself refuses to sign anything; only DEBUG gets a stand-in.
SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY") or ("insecure-for-debug-only" if DEBUG else "")
# While a key is exchanged: the old ones, which still open what they have signed.
SECRET_KEY_FALLBACKS = words("DJANGO_SECRET_KEY_FALLBACKS")
ALLOWED_HOSTS = words("DJANGO_ALLOWED_HOSTS")
# Ids of system checks that shall not speak, nor keep anything from starting.
SILENCED_SYSTEM_CHECKS = words("DJANGO_SILENCED_SYSTEM_CHECKS")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_celery_results",
    "django_htmx",  # brings htmx itself; its middleware is not needed
    "renders",
]

MIDDLEWARE = [
    "renders.views.health.by_any_name",
    "renders.telemetry.request_ids.RequestIds",
    "django.middleware.security.SecurityMiddleware",
    # In debug mode, `runserver` serves the static files.
    *([] if DEBUG else ["whitenoise.middleware.WhiteNoiseMiddleware"]),
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- Database: the truth ------------------------------------------------------------------

if os.environ.get("DATABASE_URL"):
    DATABASES = {"default": dj_database_url.parse(os.environ["DATABASE_URL"])}
else:
    STATE_DIR.mkdir(parents=True, exist_ok=True)
    DATABASES = {
        "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(STATE_DIR / "db.sqlite3")}
    }

if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # Writers queue up instead of failing with "database is locked".
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
else:
    DATABASES["default"]["CONN_MAX_AGE"] = 60
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = LOGOUT_REDIRECT_URL = "login"
LOGIN_REDIRECT_URL = "renders:gallery"

# --- Time, files --------------------------------------------------------------------------

LANGUAGE_CODE = "en"
USE_TZ = True
TIME_ZONE = "UTC"  # anything else shifts the clock in Flower's log

STATIC_URL = "/static/"
STATIC_ROOT = Path(os.environ.get("DJANGO_STATIC_ROOT") or BASE_DIR / "staticfiles")
MEDIA_ROOT = Path(os.environ.get("DJANGO_MEDIA_ROOT") or STATE_DIR / "media")
WHITENOISE_ALLOW_ALL_ORIGINS = False
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedStaticFilesStorage"
    },
}

# A form; files count apart, and the API has a limit of its own. "Add many" takes pasted lists.
DATA_UPLOAD_MAX_MEMORY_SIZE = 10_000_000

# --- https --------------------------------------------------------------------------------

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = flag("DJANGO_SECURE_COOKIES", not DEBUG)
SECURE_SSL_REDIRECT = flag("DJANGO_SSL_REDIRECT", not DEBUG)
# Monitors ask on the inside, past the proxy.
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)/?$"]
# An hour, until you know that https is there to stay: browsers keep to what they were told.
SECURE_HSTS_SECONDS = number("DJANGO_HSTS_SECONDS", 0 if DEBUG else 3600)
SECURE_HSTS_INCLUDE_SUBDOMAINS = flag("DJANGO_HSTS_SUBDOMAINS")
SECURE_HSTS_PRELOAD = flag("DJANGO_HSTS_PRELOAD")
# Only behind a proxy that sets this header itself: anybody else could claim to come by https.
if proxy_header := os.environ.get("DJANGO_PROXY_SSL_HEADER", "").strip():
    name = proxy_header.upper().replace("-", "_").removeprefix("HTTP_")  # as Django writes it
    SECURE_PROXY_SSL_HEADER = (f"HTTP_{name}", "https")
CSRF_TRUSTED_ORIGINS = words("DJANGO_CSRF_TRUSTED_ORIGINS")
SECURE_CONTENT_TYPE_NOSNIFF = True

# --- Redis and Celery ---------------------------------------------------------------------

REDIS_URL = os.environ.get("REDIS_URL") or "redis://127.0.0.1:6379/0"

broker = os.environ.get("CELERY_BROKER_URL") or REDIS_URL
CELERY_BROKER_URL = celery_settings.broker_url(broker)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_CONNECTION_TIMEOUT = celery_settings.BROKER_TIMEOUT_SECONDS
CELERY_BROKER_TRANSPORT_OPTIONS = celery_settings.broker_options(broker)
CELERY_BROKER_USE_SSL = celery_settings.broker_tls(broker) or False
CELERY_TASK_PUBLISH_RETRY_POLICY = celery_settings.PUBLISH_RETRY_POLICY
CELERY_TASK_DEFAULT_QUEUE = "celery"
CELERY_TASK_QUEUES = celery_settings.queues("celery")
CELERY_TASK_ROUTES = celery_settings.TASK_ROUTES
CELERY_TASK_TIME_LIMIT = celery_settings.TIME_LIMIT_SECONDS
CELERY_TASK_SOFT_TIME_LIMIT = celery_settings.SOFT_TIME_LIMIT_SECONDS
CELERY_TASK_SERIALIZER = CELERY_RESULT_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = CELERY_RESULT_ACCEPT_CONTENT = ["json"]
CELERY_TASK_TRACK_STARTED = True
CELERY_TASK_SEND_SENT_EVENT = True
CELERY_RESULT_BACKEND = "django-db"
CELERY_RESULT_EXTENDED = True
CELERY_RESULT_EXPIRES = 7 * 24 * 3600
CELERY_WORKER_CONSUMER = celery_settings.WORKER_CONSUMER
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_SEND_TASK_EVENTS = True
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 10
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_ENABLE_UTC = True
CELERY_TIMEZONE = TIME_ZONE

# --- Renders ------------------------------------------------------------------------------

RENDERS: dict[str, object] = {
    name.removeprefix("RENDERS_"): Hidden(value) if name.endswith("_TOKEN") else value
    for name, value in os.environ.items()
    if name.startswith("RENDERS_") and value.strip()
}
RENDERS |= {
    "API_KEY": Hidden(os.environ.get("SUME_API_KEY", "")),
    "BASE_URL": os.environ.get("SUME_BASE_URL") or "https://api.sume.com",
    "REDIS_URL": REDIS_URL,
    "WEBHOOK_SECRET": Hidden(os.environ.get("SUME_WEBHOOK_SECRET", "")),
    "WORKSPACES": workspaces_in(os.environ),
}

CELERY_BEAT_SCHEDULE = celery_settings.beat_schedule(RENDERS.get("SWEEP_SECONDS", 30))

# --- Errors and logs ----------------------------------------------------------------------

DEFAULT_EXCEPTION_REPORTER_FILTER = "renders.telemetry.error_filter.ErrorFilter"

LOGGING = logging_config(os.environ.get("DJANGO_LOG_FORMAT", "line"))
