"""What a log line is about: which render, Sume job, request and task. Each line carries it.

`about(render=...)` binds for a block, in this thread; `note(...)` adds to the innermost block.
`Context` is the logging filter that puts what is bound onto each record.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any

FIELDS = ("render", "job", "sume_request", "task", "task_id", "request_id")
# Remote parties have a say in some of them.
LONGEST = 200
ODD = re.compile(r"[^!-~]+")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Bound = dict[str, object]
# As it was given: it is made fit for a line when there is one.
_bound: ContextVar[Bound | None] = ContextVar("renders_log_context", default=None)


def known() -> Mapping[str, str]:
    """What is bound now, by the names of `FIELDS`."""
    return _clean(_bound.get() or {})


def bind(**facts: object) -> Token[Bound | None]:
    """As `about`, until `unbind`: for those who are called at both ends of something."""
    return _bound.set({**(_bound.get() or {}), **_given(facts)})


def unbind(token: Token[Bound | None]) -> None:
    """Back to what was bound before."""
    _bound.reset(token)


@contextmanager
def about(**facts: object) -> Iterator[None]:
    """All lines meanwhile are about this; what is empty changes nothing."""
    token = bind(**facts)
    try:
        yield
    finally:
        unbind(token)


def note(**facts: object) -> None:
    """The rest of the block is about this, too; without a block, nothing is noted."""
    bound = _bound.get()
    if bound is not None:
        bound.update(_given(facts))


def _given(facts: Mapping[str, object]) -> Bound:
    return {name: fact for name, fact in facts.items() if fact}


def _clean(facts: Mapping[str, object]) -> dict[str, str]:
    return {name: ODD.sub("?", str(fact))[:LONGEST] for name, fact in facts.items() if fact}


class Context(logging.Filter):
    """Sets each of `FIELDS` on a record (empty where unknown), and `context`: all in one text."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Lets every record pass."""
        found = {
            **_of_message(getattr(record, "data", None)),
            **_of_request(getattr(record, "request", None)),
            **known(),
        }
        for name in FIELDS:
            setattr(record, name, found.get(name, ""))
        words = " ".join(f"{name}={found[name]}" for name in FIELDS if name in found)
        record.context = f" [{words}]" if words else ""
        return True


def _of_message(data: Any) -> dict[str, str]:
    """What Celery tells of a message that has come, in whose task nobody is yet."""
    if not isinstance(data, dict) or not str(data.get("name", "")).startswith("renders.tasks."):
        return {}
    facts = {"task": short(str(data["name"])), "task_id": data.get("id")}
    return _clean({**facts, "render": render_in(data.get("args"))})


def _of_request(request: Any) -> dict[str, str]:
    """What Django tells of a request when it is answered."""
    return _clean({"request_id": getattr(request, "request_id", "")})


def short(task: str) -> str:
    """A task's own name, without its module's."""
    return task.rpartition(".")[2]


def render_in(args: object) -> str:
    """The render's id among the arguments of a task of ours: each that has one, has it first."""
    first = args[0] if isinstance(args, list | tuple) and args else args
    found = UUID.search(first) if isinstance(first, str) else None
    return found[0] if found else ""
