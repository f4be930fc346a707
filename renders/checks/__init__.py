"""System checks: a wrong setting is found at start. No network, no database.

docs/configuration.md lists them all; `python -m tests.docs` writes that table.
"""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Tags, register

from renders.checks import celery, flower, media, settings, site, sume
from renders.checks.installation import check_installation as check_installation


@register("renders", Tags.compatibility)
def check_settings(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Every setting can be read, and they fit together."""
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
