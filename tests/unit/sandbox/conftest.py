from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from renders.sandbox import Sandbox

from .support import Bench, Caller


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def start() -> Iterator[Callable[..., tuple[Sandbox, Caller]]]:
    """Start a sandbox with the given options; jobs end at once unless told otherwise."""
    with ExitStack() as stack:

        def starter(**options: Any) -> tuple[Sandbox, Caller]:
            settings = {"queued_seconds": 0, "processing_seconds": 0} | options
            sandbox = stack.enter_context(Sandbox(**settings))
            caller = Caller(sandbox.url)
            stack.callback(caller.session.close)
            return sandbox, caller

        yield starter
