"""One simulated site: its processes, its broker, its people, and what goes wrong with them."""

import heapq
import itertools
import logging
import os
import random
import secrets
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import override_settings
from kombu.exceptions import OperationalError

from renders import services, tasks, transitions
from renders.coordination.connections import poll_leases, polls
from renders.housekeeping import erasing
from renders.limits import spending
from renders.models import RenderJob
from renders.sandbox.options import Options
from renders.schedulers import dispatch, runner
from renders.schedulers.queues import SetQueue
from renders.schedulers.reader import Reader
from renders.services import bulk
from renders.states import TERMINAL
from tests.effects.models import Effect
from tests.simulation.actors import Actor, Killed, Process, Stage, Threads
from tests.simulation.checks import Violation, check_end, check_row
from tests.simulation.clock import Clock
from tests.simulation.plan import Incident, Plan
from tests.simulation.redis_model import RedisModel
from tests.simulation.sume import KEY, Account, Client, Luck

# Times as on a real site, but for what only makes a run longer.
SETTINGS: dict[str, Any] = {
    "API_KEY": KEY,
    "BASE_URL": "http://sume.simulation",
    "REQUEST_TIMEOUT_SECONDS": 30,
    "LEASE_MARGIN_SECONDS": 15,
    "DEFAULT_POLL_SECONDS": 15,
    "MIN_POLL_SECONDS": 1,
    "MAX_POLL_SECONDS": 60,
    "REAP_AFTER_SECONDS": 120,
    "SWEEP_SECONDS": 30,
    "NOT_FOUND_GRACE_SECONDS": 300,
    "PAUSE_SECONDS": 5,
    "MAX_PAUSE_SECONDS": 60,
    "SAVE_MEDIA": False,
    "PRICES": {"image": 0.09, "image:sume/auto": 0.09},
    "TICKS": 0,
    "INSTALLATION_ID": "3f2b1c1e-0000-4000-8000-000000000017",
}
WEBHOOKS = {"PUBLIC_URL": "https://site.simulation", "WEBHOOK_SECRET": "a-secret"}
# After the last incident, every render ends within this time, besides what the clock was off.
BOUND_SECONDS = 1200.0
# After the end, what is still on its way arrives within this time.
TAIL_SECONDS = 45.0
WORKERS = 4
# How late a delayed message is; how soon a process that died is started again.
LATE_SECONDS, RESTART_SECONDS = 50.0, 3.0
RUNNERS = 2
USERS = ("ann", "bob")


@dataclass(order=True)
class Message:
    """A task on its way; `due` in seconds of the true time."""

    due: float
    number: int
    name: str
    args: tuple[str, ...]
    expires: float = float("inf")

    def __str__(self) -> str:
        return f"{self.name} {' '.join(arg[:8] for arg in self.args)}".strip()


class World:
    """One site with one plan, from its first second until all is done."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.clock = Clock()
        self.stage = Stage(self.clock, f"stage {plan.seed}")
        self.dice = random.Random(f"world {plan.seed}")
        self.redis = RedisModel(lambda: self.clock.now, self._point)
        options = Options(
            writes_per_minute=plan.settings["WRITES_PER_MINUTE"],
            key=KEY,
            seed=plan.seed,
            **plan.sandbox,
        )
        self.sume = Account(self.stage, options, Luck(plan.fault_rate, f"luck {plan.seed}"))
        self.sume.note = self.note
        self.client = Client(self.sume, SETTINGS["REQUEST_TIMEOUT_SECONDS"])
        self.history: list[str] = []
        self.calm = False
        self.over = False
        self.stepped_at: list[float] = []
        self.unsettled_at: list[float] = []
        """When Redis was emptied or away, or a worker stalled: reads may double."""
        self.resent = 0
        self.wins: set[tuple[uuid.UUID, int]] = set()
        self._messages: list[Message] = []
        self._numbers = itertools.count()
        self._free: deque[int] = deque(range(WORKERS))
        self._waiting: deque[Message] = deque()
        self._broker_away = self._beat_away = False
        self._next_message: deque[str] = deque()
        self._strikes: list[_Strike] = []
        self._people: list[Process] = []

    # --- A whole run -------------------------------------------------------------------------

    def run(self) -> None:
        """Raises `Violation`, or the error that a process raised."""
        with self._here():
            try:
                self._begin()
                last = max(one.at for one in self.plan.incidents) + 1
                self.stage.run(lambda: False, last)
                self._come_to_rest()
                bound = self.clock.now + BOUND_SECONDS + sum(map(abs, self._steps()))
                self.stage.run(lambda: self.over, bound)
                # What is still on its way when all is done must change nothing.
                self.stage.run(lambda: False, self.clock.now + TAIL_SECONDS)
                check_end(self)
            finally:
                self.stage.end()

    def note(self, line: str) -> None:
        """A line of the history."""
        actor = self.stage.actor
        who = actor.process.name if actor else "-"
        self.history.append(f"{self.clock.now:8.2f} {who:9} {line}")

    def _steps(self) -> list[float]:
        return [one.seconds for one in self.plan.incidents if one.what == "clock"]

    def _look(self) -> None:
        """Whether all is done: looked at now and then."""
        check_row(self)
        open_ones = RenderJob.objects.exclude(status__in=TERMINAL, handled_at__isnull=False)
        self._people = [process for process in self._people if process.actors]
        if self.calm and not self._people and not open_ones.exists():
            self._resend()
            self.over = not self._people
        self.stage.at(self.clock.now + 15, self._look)

    def _resend(self) -> None:
        for render in RenderJob.objects.resendable():
            self._as_person(lambda render=render: self._send_again(render))

    def _send_again(self, render: RenderJob) -> None:
        if services.resend_render(render):
            self.resent += 1
            self.note(f"sends {str(render.pk)[:8]} again")

    def _begin(self) -> None:
        for one in self.plan.incidents:
            self.stage.at(one.at, lambda one=one: self._happen(one))
        self.stage.at(20, self._look)
        if self.plan.scheduler == "database":
            for number in range(RUNNERS):
                self._loop(f"runner {number}", self._run_renders)
        else:
            self._beat()
        if self.plan.scheduler == "sortedset":
            self._loop("reader", self._poll_renders)

    def _come_to_rest(self) -> None:
        """Nothing more goes wrong, and people let go of what they hold."""
        self.note("-- nothing goes wrong from here on")
        self.calm = True
        self._strikes.clear()
        self._next_message.clear()
        self.redis.away = self._broker_away = self._beat_away = False
        self.sume.luck.rate = 0
        self._set("BUDGET_USD", 0)
        self._as_person(self._let_go)

    def _let_go(self) -> None:
        services.resume_sending("default")
        bulk.release_renders(RenderJob.objects.filter(held_at__isnull=False))

    # --- Processes -----------------------------------------------------------------------------

    def _loop(self, name: str, do: Callable[[], object]) -> None:
        def again() -> None:
            self.stage.at(self.clock.now + RESTART_SECONDS, lambda: self._loop(name, do))

        self.stage.start(Process(name, again), do)

    def _run_renders(self) -> None:
        loop = runner.Runner(self._clients, slots=4)
        while True:
            loop.turn()

    def _poll_renders(self) -> None:
        queue = SetQueue(polls(), poll_leases())
        reader = Reader(queue, self._clients, slots=4, follow=dispatch.follow)
        while True:
            reader.turn(5.0)

    def _beat(self) -> None:
        if not self._beat_away:
            every = SETTINGS["SWEEP_SECONDS"]
            if not self._broker_away:
                self._put("sweep_renders", (), 0.0, self.clock.now + every)
        self.stage.at(self.clock.now + SETTINGS["SWEEP_SECONDS"], self._beat)

    def _clients(self, workspace: str) -> Client:
        return self.client

    # --- The broker ----------------------------------------------------------------------------

    def send(self, name: str, args: list[str], countdown: float | None) -> None:
        """As Celery's `apply_async`: some messages are lost, doubled or late."""
        self._point(f"message {name}")
        if self._broker_away:
            raise OperationalError("The broker is away.")
        fate = self._next_message.popleft() if self._next_message else ""
        if not fate and not self.calm and self.dice.random() < self.plan.message_faults:
            fate = self.dice.choice(["lose", "double", "delay"])
        wait = countdown or 0.0
        line = f"sends {name} {' '.join(arg[:8] for arg in args)} in {wait:.1f} s"
        self.note(f"{line}{f': {fate}d' if fate else ''}")
        if fate != "lose":
            self._put(name, tuple(args), wait + LATE_SECONDS * (fate == "delay"))
        if fate == "double":
            self._put(name, tuple(args), wait + self.dice.choice([0.0, 0.2, 5.0]))
        self._point(f"message {name} sent")

    def _put(
        self, name: str, args: tuple[str, ...], wait: float, expires: float = float("inf")
    ) -> None:
        due = self.clock.now + wait
        heapq.heappush(self._messages, Message(due, next(self._numbers), name, args, expires))
        self.stage.at(due, self._deliver)

    def _deliver(self) -> None:
        while self._messages and self._messages[0].due <= self.clock.now:
            self._waiting.append(heapq.heappop(self._messages))
        while self._waiting and self._free and not self._broker_away:
            message = self._waiting.popleft()
            if message.expires > self.clock.now:
                self._take(message)

    def _take(self, message: Message) -> None:
        number = self._free.popleft()
        done = False

        def died() -> None:
            self.note(f"worker {number} is dead, at {message}")
            if self.dice.random() < 0.3:  # it was not acknowledged yet
                self._put(message.name, message.args, 10.0)
            self.stage.at(self.clock.now + RESTART_SECONDS, free)

        def free() -> None:
            self._free.append(number)
            self._deliver()

        def do() -> None:
            getattr(tasks, message.name).run(*message.args)
            nonlocal done
            done = True
            self._free.append(number)
            self.stage.at(self.clock.now, self._deliver)

        self.stage.start(Process(f"worker {number}", died), do)

    # --- Incidents -----------------------------------------------------------------------------

    def _happen(self, one: Incident) -> None:
        self.note(f"** {one}")
        act = getattr(self, f"_do_{one.what.replace(' ', '_')}")
        if one.what in PEOPLE:
            self._as_person(lambda: act(one))
        else:
            act(one)

    def _as_person(self, act: Callable[[], object]) -> None:
        process = Process("web")
        self._people.append(process)
        self.stage.start(process, act)

    def _any(self, one: Incident) -> RenderJob | None:
        rows = RenderJob.objects.order_by("created_at", "pk")
        return rows[one.number % len(rows)] if rows else None

    def _do_create(self, one: Incident) -> None:
        user = get_user_model().objects.get(username=USERS[one.number])
        reference = f"picture {self.plan.incidents.index(one)}"
        services.create_render(one.text, user=user, reference=reference)

    def _do_cancel(self, one: Incident) -> None:
        if render := self._any(one):
            services.cancel_render(render)

    def _do_hold(self, one: Incident) -> None:
        if render := self._any(one):
            bulk.hold_renders(RenderJob.objects.filter(pk=render.pk))

    def _do_retry(self, one: Incident) -> None:
        """A double click: two requests at once."""
        render = self._any(one)
        if render and render.status in {"failed", "canceled"} and not render.erased_at:
            for _ in range(2):
                self._as_person(lambda: services.retry_render(render))

    def _do_pause(self, one: Incident) -> None:
        services.pause_sending("default")
        self.stage.sleep(one.seconds)
        services.resume_sending("default")

    def _do_erase(self, one: Incident) -> None:
        user = get_user_model().objects.get(username=USERS[one.number % 2])
        try:
            erasing.erase(user)
        except erasing.NotOver:
            self.note("nothing is erased: a render is not over")

    def _do_check_now(self, one: Incident) -> None:
        self.unsettled_at.append(self.clock.now)
        services.check_now(RenderJob.objects.values_list("pk", flat=True))

    def _do_kill(self, one: Incident) -> None:
        self._strikes.append(_Strike(one, one.number))

    _do_stall = _do_kill

    def _do_empty_redis(self, one: Incident) -> None:
        self.unsettled_at.append(self.clock.now)
        self.redis.empty()

    def _do_redis_away(self, one: Incident) -> None:
        self.unsettled_at += [self.clock.now, self.clock.now + one.seconds]
        self.redis.away = True
        self.stage.at(self.clock.now + one.seconds, lambda: setattr(self.redis, "away", False))

    def _do_broker_away(self, one: Incident) -> None:
        self._broker_away = True

        def back() -> None:
            self._broker_away = False
            self._deliver()

        self.stage.at(self.clock.now + one.seconds, back)

    def _do_beat_away(self, one: Incident) -> None:
        self._beat_away = True
        self.stage.at(self.clock.now + one.seconds, lambda: setattr(self, "_beat_away", False))

    def _do_lose_a_message(self, one: Incident) -> None:
        self._next_message.append("lose")

    def _do_double_a_message(self, one: Incident) -> None:
        self._next_message.append("double")

    def _do_delay_a_message(self, one: Incident) -> None:
        self._next_message.append("delay")

    def _do_clock(self, one: Incident) -> None:
        self.stepped_at.append(self.clock.now)
        self.clock.step(one.seconds)

    def _do_other_settings(self, one: Incident) -> None:
        """The site is deployed again, with webhooks or without."""
        for name, value in WEBHOOKS.items():
            self._set(name, value if one.number % 2 else "")

    # --- Points --------------------------------------------------------------------------------

    def _point(self, what: str) -> None:
        self.stage.point(what, may_wait=not connection.in_atomic_block)

    def _at_point(self, actor: Actor, what: str) -> None:
        """Whether a strike that was planned hits this actor here."""
        for strike in list(self._strikes):
            one = strike.incident
            if strike.points_left > 0:
                strike.points_left -= 1
            elif one.what == "kill":
                self._strikes.remove(strike)
                self.note(f"killed before {what[:90]}")
                self.stage.kill(actor.process)
                raise Killed
            elif not connection.in_atomic_block:
                self._strikes.remove(strike)
                self.note(f"stalls before {what[:90]}")
                self.unsettled_at += [self.clock.now, self.clock.now + one.seconds]
                actor.process.slept_until = self.clock.now + one.seconds
                self.stage.sleep(one.seconds)
                return

    def _statement(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        # A dead process's transaction is rolled back by the database.
        if not sql.startswith(("ROLLBACK", "RELEASE", "SAVEPOINT")):
            self._point(sql)
        return execute(sql, params, many, context)

    # --- The setting ---------------------------------------------------------------------------

    def _set(self, name: str, value: object) -> None:
        settings.RENDERS = {**settings.RENDERS, name: value}

    @contextmanager
    def _here(self) -> Iterator[None]:
        ours = {**SETTINGS, **self.plan.settings, "SCHEDULER": self.plan.scheduler}
        self._clear()
        random.seed(f"app {self.plan.seed}")
        spending.forget()
        Threads.stage = self.stage
        self.stage.at_point = self._at_point
        bytes_of = random.Random(f"ids {self.plan.seed}").randbytes
        with ExitStack() as here:
            enter = here.enter_context
            enter(override_settings(RENDERS={**settings.RENDERS, **ours}))
            enter(self.clock.running())
            enter(mock.patch("time.sleep", self.stage.sleep))
            enter(mock.patch.object(os, "urandom", bytes_of))
            enter(
                mock.patch.object(uuid, "uuid4", lambda: uuid.UUID(bytes=bytes_of(16), version=4))
            )
            enter(mock.patch.object(secrets, "token_hex", lambda size: bytes_of(size).hex()))
            for target, value in self._replaced().items():
                enter(mock.patch(target, value))
            enter(connection.execute_wrapper(self._statement))
            logging.disable(logging.CRITICAL)
            here.callback(logging.disable, logging.NOTSET)
            yield

    def _replaced(self) -> dict[str, Any]:
        record_read = transitions.polling.record_read

        def noted(pk: uuid.UUID, sequence: int, *args: Any, **kwargs: Any) -> bool:
            won = record_read(pk, sequence, *args, **kwargs)
            if won and (pk, sequence) in self.wins:
                raise Violation(f"Two reads of {pk} were recorded from one sequence, {sequence}.")
            if won:
                self.wins.add((pk, sequence))
            return won

        return {
            "renders.coordination.connections._redis": lambda url: self.redis,
            "renders.schedulers.dispatch.task": lambda name: _Task(self, name),
            "renders.schedulers.reader.Threads": Threads,
            "renders.schedulers.step_pool.Threads": Threads,
            "renders.tasks.sume": self._clients,
            "renders.sume.client.was_sent": lambda: self.client.sent,
            "renders.telemetry.store.flush": lambda: True,
            "renders.telemetry.heartbeats.note": lambda name: None,
            "renders.housekeeping.pruning.prune": lambda: None,
            "renders.transitions.polling.record_read": noted,
            "renders.schedulers.runner.LOOK_SECONDS": 20.0,
            "renders.schedulers.runner.TURN_SECONDS": 8.0,
            "renders.schedulers.queues.TABLE_IDLE_SECONDS": 15.0,
            "renders.schedulers.queues.TableQueue.idle_seconds": 15.0,
            "renders.schedulers.queues.SET_IDLE_SECONDS": 10.0,
        }

    def _clear(self) -> None:
        with connection.cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"DELETE FROM {table}")  # noqa: S608 (no value in it)
        users = get_user_model()
        for name in USERS:
            users.objects.get_or_create(username=name)


@dataclass(eq=False)
class _Strike:
    """A kill or a stall: it hits the actor that comes to a point once `points_left` is 0."""

    incident: Incident
    points_left: int


class _Task:
    """A task as `dispatch` sees it."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name

    def apply_async(self, args: list[str], countdown: float | None = None) -> None:
        self._world.send(self._name, args, countdown)


PEOPLE = {"create", "cancel", "hold", "retry", "pause", "erase", "check now"}
TABLES = (
    Effect._meta.db_table,
    "renders_renderevent",
    "renders_renderjob",
    "renders_gate",
    "renders_tally",
    "renders_heartbeat",
    "renders_avatar",
)
