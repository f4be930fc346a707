"""The studio without the admin, Celery's work and Redis: what is left is the least there can be."""

from studio.settings import *  # noqa: F403
from studio.settings import INSTALLED_APPS, RENDERS

INSTALLED_APPS = [name for name in INSTALLED_APPS if name != "studio.apps.DeskConfig"]
ROOT_URLCONF = "studio.plain_urls"
RENDERS = {**RENDERS, "SCHEDULER": "database"}
