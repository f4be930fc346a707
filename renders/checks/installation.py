"""Checks for a project that uses the app: installation steps that are still missing."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.shortcuts import resolve_url
from django.template import TemplateDoesNotExist, TemplateSyntaxError
from django.template.loader import get_template
from django.urls import NoReverseMatch, Resolver404, get_script_prefix, resolve, reverse

from renders.celery_settings import SWEEP_TASK
from renders.checks import celery
from renders.conf import conf

STEPS = "docs/own-project.md has all steps."
# Apps that the pages need, besides this app.
PAGES_NEED = ("django.contrib.auth", "django.contrib.messages", "django_htmx")


@register("renders")
def check_installation(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """What is missing for Celery to run in this project, and for the app's pages to work."""
    return [*_of_celery(), *_of_pages()]


def _of_celery() -> Iterator[CheckMessage]:
    try:
        if conf.SCHEDULER == "database":
            return
    except ImproperlyConfigured:
        return  # another check reports it
    if not celery.loaded():
        yield Error(
            "This project has no Celery app, so messages would go to a broker that nobody set.",
            hint="Make one, and import it in the project's __init__.py, so that the web server "
            f'has it too; or set RENDERS["SCHEDULER"] = "database" to do without. {STEPS}',
            id="renders.E040",
        )
        return
    schedule = celery.value_of("beat_schedule") or {}
    kept_elsewhere = "PersistentScheduler" not in str(celery.value_of("beat_scheduler") or "")
    tasks = {_task_of(entry) for entry in schedule.values()}
    if SWEEP_TASK not in tasks and not kept_elsewhere:
        name = celery.name_of("beat_schedule")
        yield Warning(
            "Beat is not told of the sweep: what stops (a killed worker) is not put back to work.",
            hint=f"Add renders.celery_settings.beat_schedule() to {name}. {STEPS}",
            id="renders.W041",
        )


def _task_of(entry: Any) -> Any:
    return entry.get("task") if isinstance(entry, dict) else getattr(entry, "task", None)


def _of_pages() -> Iterator[CheckMessage]:
    if not getattr(settings, "ROOT_URLCONF", ""):
        return
    try:
        reverse("renders:gallery")
    except NoReverseMatch:
        yield Warning(
            "The app's pages have no address: there is no gallery, no API, no webhook.",
            hint='Add path("", include("renders.urls")) to the project\'s urls.py, or silence '
            f"this if you only call renders.services. {STEPS}",
            id="renders.W042",
        )
        return
    missing = [name for name in PAGES_NEED if not apps.is_installed(name)]
    if missing:
        yield Error(
            f"The app's pages need what is not in INSTALLED_APPS: {', '.join(missing)}.",
            hint=f"Add it there. {STEPS}",
            id="renders.E043",
        )
        return
    try:
        get_template("renders/base.html")
    except (TemplateDoesNotExist, TemplateSyntaxError) as error:
        yield Error(
            f"The app's templates cannot be used ({type(error).__name__}).",
            hint='Set "APP_DIRS": True for the DjangoTemplates of TEMPLATES.',
            id="renders.E044",
        )
    if not _leads_somewhere(settings.LOGIN_URL):
        yield Warning(
            "LOGIN_URL does not resolve to a page.",
            hint=f"Set LOGIN_URL to your own login page (an address or a name of urls.py). {STEPS}",
            id="renders.W045",
        )


def _leads_somewhere(address: Any) -> bool:
    try:
        url = resolve_url(address)
        if "://" not in url and not url.startswith("//"):
            resolve("/" + url.partition("?")[0].removeprefix(get_script_prefix()))
    except (NoReverseMatch, Resolver404):
        return False
    return True
