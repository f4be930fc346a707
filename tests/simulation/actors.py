"""Who acts: processes of actors that take turns, each a greenlet that can be killed at any point.

An actor gives way at points: before each statement outside a transaction, and around each command
to Redis, message and request. Time passes only while all of them wait.
"""

import heapq
import itertools
import random
from collections.abc import Callable
from typing import Any

from greenlet import greenlet

from tests.simulation.clock import Clock

# The share of points at which an actor lets others go first, and for how long at most.
GIVES_WAY, LONGEST_STEP_SECONDS = 0.3, 0.02


class Killed(BaseException):
    """This process was killed: nothing that it does from here on has an effect."""


class Process:
    """Actors that die together. `died` is called once, when they do."""

    def __init__(self, name: str, died: Callable[[], object] = lambda: None) -> None:
        self.name = name
        self.died = died
        self.dead = False
        self.slept_until = -1.0
        """Until when one of its actors slept while others took it for dead."""
        self.actors: list[Actor] = []


class Actor(greenlet):
    """One thread of a process."""

    def __init__(self, stage: "Stage", process: Process, do: Callable[[], object]) -> None:
        super().__init__(stage.play, parent=stage.hub)
        self.process, self.do = process, do
        self.turn = 0
        """Changes whenever it is woken up: an older alarm is void."""
        process.actors.append(self)


class Stage:
    """Whose turn it is, and when."""

    def __init__(self, clock: Clock, seed: str) -> None:
        self.clock = clock
        self.hub = greenlet.getcurrent()
        self.error: BaseException | None = None
        self._alarms: list[tuple[float, int, Any, int]] = []
        self._numbers = itertools.count()
        self._random = random.Random(seed)
        self.at_point: Callable[[Actor, str], None] = lambda actor, what: None
        """Called at each point; may call `kill` or `stall`."""

    @property
    def actor(self) -> Actor | None:
        """Who acts now; None outside the simulation."""
        current = greenlet.getcurrent()
        return current if isinstance(current, Actor) else None

    def start(self, process: Process, do: Callable[[], object]) -> Actor:
        """Let a new actor of this process begin now."""
        actor = Actor(self, process, do)
        self._set_alarm(actor, self.clock.now)
        return actor

    def at(self, moment: float, do: Callable[[], object]) -> None:
        """Have this done at that time, by nobody who could be killed."""
        heapq.heappush(self._alarms, (moment, next(self._numbers), do, 0))

    def run(self, until: Callable[[], bool], latest: float) -> None:
        """Let time pass until this is true, or the latest moment has come. Raises their errors."""
        while self._alarms and not until():
            moment, _, whom, turn = heapq.heappop(self._alarms)
            if moment > latest:
                heapq.heappush(self._alarms, (moment, next(self._numbers), whom, turn))
                self.clock.pass_to(latest)
                return
            if isinstance(whom, Actor):
                if whom.dead or whom.turn != turn:
                    continue
                self.clock.pass_to(moment)
                whom.switch()
            else:
                self.clock.pass_to(moment)
                whom()
            if self.error:
                raise self.error

    def play(self) -> None:
        """What an actor does, to its end."""
        actor = self.actor
        assert actor
        try:
            actor.do()
        except Killed:
            pass
        except Exception as error:  # noqa: BLE001 (the run raises it)
            self.error = self.error or error
        finally:
            if actor in actor.process.actors:
                actor.process.actors.remove(actor)

    def point(self, what: str, *, may_wait: bool = True) -> None:
        """Something that others can see is about to happen. Raises `Killed`."""
        actor = self.actor
        if actor is None:
            return
        if not actor.process.dead:
            self.at_point(actor, what)
            if may_wait and self._random.random() < GIVES_WAY:
                self.sleep(self._random.random() * LONGEST_STEP_SECONDS)
        if actor.process.dead:
            raise Killed

    def sleep(self, seconds: float) -> None:
        """Wait; others act meanwhile. Raises `Killed`."""
        actor = self.actor
        assert actor, "Only actors wait."
        if not actor.process.dead:
            self._set_alarm(actor, self.clock.now + seconds)
            self.hub.switch()
        if actor.process.dead:
            raise Killed

    def wake(self, actor: Actor) -> None:
        """End the wait of this actor now."""
        self._set_alarm(actor, self.clock.now)

    def kill(self, process: Process) -> None:
        """Kill all actors of a process; the one that calls this raises `Killed` at its point."""
        if process.dead:
            return
        process.dead = True
        for actor in list(process.actors):
            if actor is not self.actor:
                self._end(actor)
        process.died()

    def end(self) -> None:
        """Kill all processes that still wait."""
        waiting = {whom for _, _, whom, _ in self._alarms if isinstance(whom, Actor)}
        for process in {actor.process for actor in waiting}:
            process.died = lambda: None
            self.kill(process)

    def _end(self, actor: Actor) -> None:
        if actor:  # it has begun and not ended
            actor.parent = greenlet.getcurrent()
            actor.throw(Killed)
        elif not actor.dead:  # it has not begun
            actor.turn += 1
            actor.process.actors.remove(actor)

    def _set_alarm(self, actor: Actor, moment: float) -> None:
        actor.turn += 1
        heapq.heappush(self._alarms, (moment, next(self._numbers), actor, actor.turn))


class Threads:
    """`renders.schedulers.step_pool.Threads`, whose threads are actors of the same process."""

    stage: Stage

    def __init__(self, work: Callable[[Any], Any], most: int, name: str) -> None:
        self._work, self._most = work, most
        self._jobs: list[Any] = []
        self._done: list[Any] = []
        self._running = 0
        self._waiter: Actor | None = None
        self.busy = 0

    @property
    def free(self) -> int:
        return self._most - self.busy

    def put(self, job: Any) -> None:
        self.busy += 1
        self._jobs.append(job)
        if self._running < self._most:
            self._running += 1
            actor = self.stage.actor
            assert actor
            self.stage.start(actor.process, self._run)

    def get(self, seconds: float, most: int) -> list[Any]:
        if not self._done and seconds > 0:
            self._waiter = self.stage.actor
            self.stage.sleep(seconds)
            self._waiter = None
        results, self._done = self._done[:most], self._done[most:]
        self.busy -= len(results)
        return results

    def end(self) -> None:
        pass

    def _run(self) -> None:
        try:
            while self._jobs:
                done = self._work(self._jobs.pop(0))
                self._done.append(done)
                if self._waiter:
                    self.stage.wake(self._waiter)
        finally:
            self._running -= 1
