"""A project with habits of its own: its names, user, time zone, language, pages, broker."""

import json
import os

from renders import celery_settings
from renders.redaction import Hidden

DEBUG = False
SECRET_KEY = os.environ.get("STUDIO_SECRET_KEY", "the-key-of-the-studio-in-tests-1234567890")
SILENCED_SYSTEM_CHECKS = ["renders.W034"]  # SQLite will do for a test
ALLOWED_HOSTS = ["127.0.0.1", "testserver"]

INSTALLED_APPS = [
    "studio.apps.DeskConfig",  # the admin, with a site of the studio's own
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "studio.people",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
ROOT_URLCONF = "studio.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [os.path.join(os.path.dirname(__file__), "templates")],
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
DATABASES = {
    "default": json.loads(os.environ.get("STUDIO_DATABASE", "{}"))
    or {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"

AUTH_USER_MODEL = "people.Person"
LOGIN_URL = "enter"

LANGUAGE_CODE = "de"
USE_THOUSAND_SEPARATOR = True
USE_TZ = True
TIME_ZONE = "America/New_York"
SESSION_COOKIE_NAME = "studio"

STATIC_URL = "assets/"
MEDIA_ROOT = os.environ.get("STUDIO_MEDIA", "media")

# --- The steps of docs/own-project.md -------------------------------------------------------

INSTALLED_APPS += ["django_htmx", "renders"]

RENDERS = {
    "API_KEY": Hidden(os.environ.get("SUME_API_KEY", "")),
    "REDIS_URL": Hidden(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")),
}
# Of addresses that hold a password, error pages and mails show nothing.
DEFAULT_EXCEPTION_REPORTER_FILTER = "renders.telemetry.error_filter.ErrorFilter"

BROKER = os.environ.get("STUDIO_BROKER", "amqp://guest:guest@127.0.0.1//")

STUDIO_CELERY_BROKER_URL = celery_settings.broker_url(BROKER)
STUDIO_CELERY_BROKER_TRANSPORT_OPTIONS = celery_settings.broker_options(BROKER)
STUDIO_CELERY_BROKER_CONNECTION_TIMEOUT = celery_settings.BROKER_TIMEOUT_SECONDS
STUDIO_CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
STUDIO_CELERY_TASK_DEFAULT_QUEUE = "studio"
STUDIO_CELERY_TASK_QUEUES = celery_settings.queues("studio")
STUDIO_CELERY_TASK_ROUTES = celery_settings.TASK_ROUTES
STUDIO_CELERY_TASK_PUBLISH_RETRY_POLICY = celery_settings.PUBLISH_RETRY_POLICY
STUDIO_CELERY_TASK_SOFT_TIME_LIMIT = celery_settings.SOFT_TIME_LIMIT_SECONDS
STUDIO_CELERY_TASK_TIME_LIMIT = celery_settings.TIME_LIMIT_SECONDS
STUDIO_CELERY_WORKER_CONSUMER = celery_settings.WORKER_CONSUMER
STUDIO_CELERY_WORKER_PREFETCH_MULTIPLIER = 1
STUDIO_CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 10
STUDIO_CELERY_BEAT_SCHEDULE = celery_settings.beat_schedule()

# --- For tests: short times, and a stand-in for Sume ----------------------------------------

RENDERS |= json.loads(os.environ.get("STUDIO_RENDERS", "{}"))
