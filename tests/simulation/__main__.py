"""`python -m tests.simulation`: runs seeds on all processors, and says what does not hold.

--first 0 --seeds 10000   which seeds; `--first 42 --seeds 1` runs one of them again
--scheduler countdown     one way of running only; the same seed is another plan then
--mutants                 put bugs in, one at a time, and say after how many seeds each is found
"""

import argparse
import multiprocessing
import multiprocessing.pool
import os
import sys
import time
from collections.abc import Iterator

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
# A seed is the same in each process: nothing may depend on the order of a set of texts.
if os.environ.get("PYTHONHASHSEED") != "0":
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])  # noqa: S606

from tests.simulation.site import prepare

prepare()
from tests.simulation.mutants import MUTANTS  # noqa: E402
from tests.simulation.plan import SCHEDULERS  # noqa: E402
from tests.simulation.running import chunk  # noqa: E402

# How many seeds a process gets at a time.
CHUNK = 20
MOST_SEEDS_OF_A_MUTANT = 1000


def say(line: str, end: str = "\n") -> None:
    sys.stdout.write(line + end)
    sys.stdout.flush()


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds (200)")
    parser.add_argument("--scheduler", choices=SCHEDULERS, help="only this way of running")
    parser.add_argument("--mutants", action="store_true", help="put in bugs on purpose")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def chunks(first: int, count: int) -> Iterator[range]:
    for start in range(first, first + count, CHUNK):
        yield range(start, min(start + CHUNK, first + count))


def run_seeds(chosen: argparse.Namespace) -> int:
    schedulers = (chosen.scheduler,) if chosen.scheduler else SCHEDULERS
    began, done, bad = time.monotonic(), 0, 0
    work = (("", seeds, schedulers) for seeds in chunks(chosen.first, chosen.seeds))
    with pool(chosen) as processes:
        for seeds, text, _ in processes.imap(chunk, work):
            done += len(seeds)
            if text:
                bad += 1
                say(f"\n{text}\n")
            elif sys.stdout.isatty():
                say(f"\r{done:,} seeds", end="")
    say(f"\r{done:,} seeds in {time.monotonic() - began:.0f} s: {bad or 'none'} failed.")
    return 1 if bad else 0


def run_mutants(chosen: argparse.Namespace) -> int:
    say(f"{'bug':55} {'found by seed':>13}  what did not hold")
    unfound = 0
    for name in MUTANTS:
        work = ((name, seeds, SCHEDULERS) for seeds in chunks(0, MOST_SEEDS_OF_A_MUTANT))
        with pool(chosen) as processes:
            answers = processes.imap(chunk, work)
            text, seed = next(((text, seed) for _, text, seed in answers if text), ("", "none"))
            processes.terminate()
        unfound += not text
        say(f"{name:55} {seed:>13}  {text[:100]}")
    return 1 if unfound else 0


def pool(chosen: argparse.Namespace) -> multiprocessing.pool.Pool:
    return multiprocessing.get_context("fork").Pool(chosen.processes)


def main() -> int:
    chosen = options()
    return run_mutants(chosen) if chosen.mutants else run_seeds(chosen)


if __name__ == "__main__":
    sys.exit(main())
