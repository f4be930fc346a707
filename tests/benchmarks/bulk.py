"""(g) Renders created together, against renders created one by one."""

import time
from typing import Any

from tests.benchmarks.scene import Scene
from tests.benchmarks.table import Line, plain

PART = "g"


def measure(scene: Scene) -> tuple[list[Line], dict[str, float]]:
    """The lines, and renders per second either way, messages included."""
    from django.db import connection

    from renders import services

    many, few = int(scene.lasting(10_000, 1_000)), int(scene.lasting(300, 50))
    statements = 0

    def count(execute: Any, *words: Any) -> Any:
        nonlocal statements
        statements += 1
        return execute(*words)

    scene.clear()
    services.create_render("The first one opens the connections.")
    start = time.perf_counter()
    for number in range(few):
        services.create_render(f"One of a few: {number}")
    single = few / (time.perf_counter() - start)
    messages = scene.broker.llen("renders.submit")
    requests = [{"prompt": f"One of many: {number}"} for number in range(many)]
    with connection.execute_wrapper(count):
        start = time.perf_counter()
        services.create_renders(requests)
        together = many / (time.perf_counter() - start)
    sent: Any = scene.broker.llen("renders.submit")
    return [
        plain(PART, "created a second, one by one", single, "/s"),
        plain(PART, f"created a second, {many:,} together", together, "/s"),
        plain(PART, "together : one by one", together / single, "x"),
        plain(PART, f"SQL statements for {many:,}", statements, ""),
        plain(PART, f"messages for {many:,}", sent - messages, ""),
    ], {"one by one": single, "together": together}
