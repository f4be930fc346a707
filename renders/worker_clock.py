"""Has each worker tell the time when it is asked: clocks that differ break the plan's minute."""

import time
from typing import Any

from celery.signals import worker_init

COMMAND = "renders_clock"


@worker_init.connect
def register(**kwargs: Any) -> None:
    """Add the command to those that workers answer to."""
    from celery.worker.control import inspect_command  # only workers need what this brings

    inspect_command(name=COMMAND, help="The time by this worker's clock.")(tell)


def tell(state: Any) -> float:
    """Unix seconds."""
    return time.time()
