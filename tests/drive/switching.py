"""From one mode to another in mid-run: all at once, or one process after the other."""

import random
import time
from collections.abc import Iterator
from itertools import zip_longest

from renders.demo.processes import Child, kill_group
from tests.drive import modes
from tests.drive.modes import GRACE_SECONDS, Mode
from tests.drive.stack import Stack

# Both modes run side by side for about this long, for each process that is replaced.
SIDE_BY_SIDE_SECONDS = 1.0


def at_once(stack: Stack, mode: Mode, chance: random.Random) -> Iterator[None]:
    """End all processes, then start those of the other mode; yields while it waits."""
    leaving = [_let_go(stack, name, chance) for name in sorted(stack.running)]
    for child in leaving:
        yield from _until_gone(stack, child)
    stack.be(mode)
    for name in stack.names():
        stack.start_one(name)


def rolling(stack: Stack, mode: Mode, chance: random.Random) -> Iterator[None]:
    """For each process that comes, one goes once the new one works; the web server in the middle.

    Yields while it waits.
    """
    old = sorted(stack.running, key=lambda name: modes.sort_of(name) == "beat")
    new = mode.processes(stack.workers, stack.db)
    for number, (going, coming) in enumerate(zip_longest(old, new)):
        if number == len(old) // 2:
            stack.be(mode)
        replaced = stack.set_aside(going) if going else None
        if coming:
            stack.start_one(coming)
            yield from _until_ready(stack, coming)
        calm = time.monotonic() + SIDE_BY_SIDE_SECONDS
        while time.monotonic() < calm:
            yield
        if replaced:
            _end(replaced, chance)
            yield from _until_gone(stack, replaced)
    stack.be(mode)


def _let_go(stack: Stack, name: str, chance: random.Random) -> Child:
    child = stack.set_aside(name)
    _end(child, chance)
    return child


def _end(child: Child, chance: random.Random) -> None:
    """Ask it to end, or end it, by chance; one that is still starting knows no signals yet."""
    if chance.random() < 0.5 and modes.is_ready(child.name, child):
        child.process.terminate()
    else:
        kill_group(child)


def _until_gone(stack: Stack, child: Child) -> Iterator[None]:
    killed = not child.alive and child.process.returncode == -9
    deadline = time.monotonic() + GRACE_SECONDS
    while child.alive and time.monotonic() < deadline:
        yield
    if child.alive:
        stack.bad_ends.append(f"{child.name} did not end in {GRACE_SECONDS:g} s")
    elif not killed and not modes.ended_well(child):
        stack.bad_ends.append(str(child.death()))
    kill_group(child)


def _until_ready(stack: Stack, name: str) -> Iterator[None]:
    while name in stack.running and not modes.is_ready(name, stack.running[name]):
        yield
