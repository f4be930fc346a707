"""System checks: wrong settings are reported at start. No check uses the network or the database.

docs/configuration.md lists them all; `python -m tests.docs` writes that table.
"""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Tags, register

from renders.checks import celery, flower, media, settings, site, sume
from renders.checks.installation import check_installation as check_installation


@register("renders", Tags.compatibility)
def check_settings(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """The faults of all settings; if a setting is unreadable, only those of reading and names."""
    unreadable = settings.unreadable()
    if unreadable:
        return [*unreadable, *settings.name_faults()]
    questions = (
        sume.key_faults,
        sume.workspace_faults,
        site.faults,
        settings.limit_faults,
        celery.broker_faults,
        celery.task_faults,
        sume.webhook_faults,
        media.faults,
        flower.faults,
        settings.name_faults,
    )
    return [message for ask in questions for message in ask()]
