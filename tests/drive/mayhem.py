"""What happens in a drive, and when: renders are made and canceled while things break."""

import heapq
import itertools
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from django.db import InterfaceError, OperationalError, close_old_connections
from rich.console import Console

from renders import services
from renders.models import RenderJob
from tests.drive.modes import MODES
from tests.drive.options import Options
from tests.drive.stack import AFTERMATH_SECONDS, Stack
from tests.drive.switching import at_once, rolling

REDIS_DOWN_SECONDS = 3.0
KEY_REFUSED_SECONDS = 8.0
# Long enough for a second chain, or a second effect, to show itself.
SETTLE_SECONDS = 3.0
DATABASE_AWAY = (OperationalError, InterfaceError)


@dataclass
class Diary:
    """What was done. Times are Unix seconds, as in the sandbox's ledger."""

    made: dict[str, UUID] = field(default_factory=dict)
    """Reference to the render that it got."""
    twins: list[str] = field(default_factory=list)
    """References that got two renders."""
    canceled: set[UUID] = field(default_factory=set)
    """Renders that were asked to be canceled."""
    redis_away: list[tuple[float, float]] = field(default_factory=list)
    """When Redis was emptied or away: leases were not kept."""
    side_by_side: list[tuple[float, float]] = field(default_factory=list)
    """When modes ran that do not know of each other's reads."""
    key_refused: list[tuple[float, float]] = field(default_factory=list)
    """When the key was refused."""
    reads_many: bool = False
    """Whether one process has many reads on its way at once."""
    calm_at: float = 0.0
    """When the last thing was broken."""
    ended_at: float | None = None
    """When everything was handled; None if it never was."""


class Mayhem:
    """One drive through a running stack. All of it happens in this thread."""

    def __init__(self, options: Options, stack: Stack, console: Console) -> None:
        self.diary = Diary(reads_many=any(mode.scheduler != "countdown" for mode in options.modes))
        self._options = options
        self._stack = stack
        self._console = console
        self._chance = random.Random(options.seed)
        self._plan: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._started_at = self._shown_at = time.time()

    def run(self) -> Diary:
        """Break things for a while, then wait until all renders are handled."""
        self._stack.start()
        self._make_plan()
        end = time.time() + self._options.main_seconds
        self._pass_time(lambda: time.time() >= end)
        # A fault that changes nothing, before any that is drawn: the drawn ones are over.
        self._stack.sandbox.faults.add("slow", argument=0, times=None)
        self.diary.calm_at = time.time()
        self._say("nothing is broken any more")
        deadline = time.time() + self._options.patience_seconds
        self._pass_time(lambda: self._all_handled() or time.time() >= deadline)
        if self._all_handled():
            self.diary.ended_at = time.time()
        settled = time.time() + SETTLE_SECONDS
        self._pass_time(lambda: time.time() >= settled)
        self._stack.stop()
        return self.diary

    def _make_plan(self) -> None:
        options, span = self._options, self._options.main_seconds
        for number in range(options.renders):
            # A third at once, so that more wait than Sume takes.
            moment = 0.0 if number % 3 == 0 else self._chance.uniform(0.05, 0.95) * span
            self._at(moment, partial(self._create, number))
        moment = options.kill_every
        while options.kill_every and moment < span:
            self._at(moment, partial(self._stack.kill_a_worker, self._chance))
            moment += options.kill_every * self._chance.uniform(0.7, 1.3)
        if options.refuse_key:
            self._at(0.15 * span, self._refuse_key)
        if options.flush_redis:
            self._at(0.35 * span, self._flush_redis)
        if options.restart_redis:
            self._at(0.55 * span, self._kill_redis)
        if options.restart_database:
            self._at(0.75 * span, self._crash_database)

        if options.switch:
            self._at(0.5 * span, self._begin_switch)

    def _begin_switch(self) -> None:
        mode = MODES[self._options.switch or ""]
        self._say(f"from {self._stack.mode.name} to {mode.name}")
        replace = rolling if self._options.rolling else at_once
        self._go_on_switching(replace(self._stack, mode, self._chance), time.time())

    def _go_on_switching(self, steps: Iterator[None], began: float) -> None:
        for _ in steps:
            self._at(0.1, partial(self._go_on_switching, steps, began))
            return
        self._say(f"all of it is {self._stack.mode.name} now")
        if self._options.doubles_reads:
            self.diary.side_by_side.append((began, time.time() + AFTERMATH_SECONDS))

    def _at(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._plan, (time.time() + seconds, next(self._order), action))

    def _pass_time(self, over: Callable[[], bool]) -> None:
        """Carry out the plan as its times come."""
        while not over():
            while self._plan and self._plan[0][0] <= time.time():
                close_old_connections()  # as between two web requests
                heapq.heappop(self._plan)[2]()
            self._stack.supervise()
            if time.time() - self._shown_at > 5:
                self._shown_at = time.time()
                left = self._open()
                more = "the database is away" if left is None else f"{left} of them not handled"
                self._say(f"{len(self.diary.made)} made, {more}")
            time.sleep(0.1)

    def _create(self, number: int) -> None:
        # What the stand-in does with each: every 10th fails, every 14th is refused.
        word = "FAIL" if number % 10 == 4 else "REJECT" if number % 14 == 5 else "A lighthouse"
        reference = f"drive-{number}"
        # Few prompts: the stand-in draws each picture once, which is slow where all want the CPU.
        make = partial(services.create_render, f"{word} no. {number % 4} ☂", reference=reference)
        try:
            render = make()
            if number % 6 == 1 and make().pk != render.pk:
                self.diary.twins.append(reference)
        except DATABASE_AWAY:
            self._at(0.5, partial(self._create, number))  # a caller who asks again
            return
        if self.diary.made.setdefault(reference, render.pk) != render.pk:
            self.diary.twins.append(reference)
        if number % 11 == 7:
            self._at(self._chance.uniform(0.0, 3.0), partial(self._cancel, render.pk))

    def _cancel(self, pk: UUID) -> None:
        try:
            services.cancel_render(RenderJob.objects.get(pk=pk))
        except DATABASE_AWAY:
            self._at(0.5, partial(self._cancel, pk))
            return
        self.diary.canceled.add(pk)

    def _flush_redis(self) -> None:
        self._stack.flush_redis()
        self._say("Redis emptied")
        self.diary.redis_away.append((time.time(), time.time() + AFTERMATH_SECONDS))

    def _kill_redis(self) -> None:
        self._stack.kill_redis()
        self._say("Redis killed")
        self._at(REDIS_DOWN_SECONDS, partial(self._start_redis, time.time()))

    def _start_redis(self, away_since: float) -> None:
        self._stack.start_redis()
        self._say("Redis is back, empty")
        self.diary.redis_away.append((away_since, time.time() + AFTERMATH_SECONDS))

    def _refuse_key(self) -> None:
        self._stack.sandbox.faults.add("unauthorized", on="any", times=None)
        self._say("key refused")
        self._at(KEY_REFUSED_SECONDS, partial(self._accept_key, time.time()))

    def _accept_key(self, refused_since: float) -> None:
        self._stack.sandbox.faults.clear()
        self._say("key accepted again")
        self.diary.key_refused.append((refused_since, time.time()))

    def _crash_database(self) -> None:
        self._stack.crash_database()
        self._say("PostgreSQL crashed")

    def _all_handled(self) -> bool:
        return not self._plan and self._open() == 0

    def _open(self) -> int | None:
        """How many renders are not handled yet; None while the database is away."""
        try:
            close_old_connections()
            return RenderJob.objects.filter(handled_at__isnull=True).count()
        except DATABASE_AWAY:
            return None

    def _say(self, text: str) -> None:
        self._console.print(f"{time.time() - self._started_at:6.1f} s  {text}", highlight=False)
