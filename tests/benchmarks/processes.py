"""What processes use: the processor's time and memory, of a child with all that it started."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
# Whoever is measured has one core for himself; all servers, and who measures, have another.
MEASURED, SERVERS = CORES[0], CORES[-1]


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Have what is started here run on this core, for good."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cpu_seconds(session: int) -> float:
    """The processor's time that the processes of this session have used, the ended ones too."""
    return sum(sum(map(int, fields[11:15])) for fields in _of(session)) / TICKS


def busy_seconds(core: int) -> float:
    """How long this core has worked, for whomever; 0 where nobody tells."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except FileNotFoundError:
        return 0.0
    [words] = [line.split() for line in lines if line.startswith(f"cpu{core} ")]
    user, nice, system, _, _, interrupts, soft, steal = map(int, words[1:9])
    return (user + nice + system + interrupts + soft + steal) / TICKS


def memory_bytes(session: int) -> int:
    """The memory that these processes hold now."""
    pages = sum(int(fields[21]) for fields in _of(session))
    return pages * os.sysconf("SC_PAGE_SIZE")


def _of(session: int) -> Iterator[list[str]]:
    """The words of /proc/…/stat behind the command's name, of each process of the session."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session:
            yield fields
