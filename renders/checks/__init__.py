"""System checks: a wrong setting is found at start. No network, no database.

docs/configuration.md lists them all; `python -m tests.docs` writes that table.
"""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Tags, register

from renders.checks import (
    broker,
    flower,
    limits,
    media,
    names,
    site,
    sume,
    tasks,
    webhooks,
    workspaces,
)
from renders.checks.installation import check_installation as check_installation


@register("renders", Tags.compatibility)
def check_settings(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Every setting can be read, and they fit together."""
    unreadable = limits.unreadable()
    if unreadable:
        return [*unreadable, *names.name_faults()]
    questions = (
        sume.key_faults,
        workspaces.workspace_faults,
        site.faults,
        limits.limit_faults,
        broker.broker_faults,
        tasks.task_faults,
        webhooks.webhook_faults,
        media.faults,
        flower.faults,
        names.name_faults,
    )
    return [message for ask in questions for message in ask()]
