"""The context of log lines: the render, Sume job, request and task that a line is about.

`about(render=...)` binds facts for a block in this thread; `note(...)` adds to the innermost block.
`Context` is the logging filter that adds the bound facts to each record.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any

FIELDS = ("render", "job", "sume_request", "task", "task_id", "request_id")
# Longest value: remote parties supply some of them.
LONGEST = 200
ODD = re.compile(r"[^!-~]+")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Bound = dict[str, object]
# The facts as they were given: they are cleaned when a line is written.
_bound: ContextVar[Bound | None] = ContextVar("renders_log_context", default=None)


def known() -> Mapping[str, str]:
    """The facts bound now, by the names of `FIELDS`."""
    return _clean(_bound.get() or {})


def bind(**facts: object) -> Token[Bound | None]:
    """As `about`, until `unbind`: for handlers called at the start and the end of a task."""
    return _bound.set({**(_bound.get() or {}), **_given(facts)})


def unbind(token: Token[Bound | None]) -> None:
    """Restore the facts bound before."""
    _bound.reset(token)


@contextmanager
def about(**facts: object) -> Iterator[None]:
    """Bind these facts for the block's log lines; an empty fact changes nothing."""
    token = bind(**facts)
    try:
        yield
    finally:
        unbind(token)


def note(**facts: object) -> None:
    """Add these facts for the rest of the innermost block; outside a block, do nothing."""
    bound = _bound.get()
    if bound is not None:
        bound.update(_given(facts))


class Context(logging.Filter):
    """Sets each of `FIELDS` on a record (empty if unknown), and all as one text in `context`."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the context to the record; True, since every record passes."""
        facts = {
            **_of_message(getattr(record, "data", None)),
            **_of_request(getattr(record, "request", None)),
            **known(),
        }
        for name in FIELDS:
            setattr(record, name, facts.get(name, ""))
        words = " ".join(f"{name}={facts[name]}" for name in FIELDS if name in facts)
        record.context = f" [{words}]" if words else ""
        return True


def short(task: str) -> str:
    """A task's name without its module."""
    return task.rpartition(".")[2]


def render_in(args: object) -> str:
    """The render's id in the arguments of one of our tasks: it always comes first."""
    first = args[0] if isinstance(args, list | tuple) and args else args
    match = UUID.search(first) if isinstance(first, str) else None
    return match[0] if match else ""


def _given(facts: Mapping[str, object]) -> Bound:
    """The facts that are not empty."""
    return {name: fact for name, fact in facts.items() if fact}


def _clean(facts: Mapping[str, object]) -> dict[str, str]:
    """The facts as short printable text."""
    return {name: ODD.sub("?", str(fact))[:LONGEST] for name, fact in facts.items() if fact}


def _of_message(data: Any) -> dict[str, str]:
    """The facts of a message that Celery has received and whose task has not begun."""
    if not isinstance(data, dict) or not str(data.get("name", "")).startswith("renders.tasks."):
        return {}
    facts = {"task": short(str(data["name"])), "task_id": data.get("id")}
    return _clean({**facts, "render": render_in(data.get("args"))})


def _of_request(request: Any) -> dict[str, str]:
    """The facts of a request that Django logs with its response."""
    return _clean({"request_id": getattr(request, "request_id", "")})
