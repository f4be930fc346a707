"""From a parsed HTTP request to a reply: who may, which fault, which rule."""

import hashlib
import hmac
import logging
import uuid
from dataclasses import replace
from typing import Any

from . import effects
from .effects import Wire
from .faults import CATALOGUE, WRITES, Fault, FaultBook
from .media import Signer, media_reply
from .options import Options
from .reads import Reads
from .replies import ApiError, Reply
from .request import Request
from .routes import Route, find_route
from .rules import Clock, Rules
from .submissions import read_json_object

logger = logging.getLogger(__name__)

# The reads of one job, which the ledger counts.
JOB_READS = frozenset({"status", "result", "record", "events", "media"})

WELCOME = """This is a stand-in for the Sume API (a sandbox). It makes no real pictures and bills
nothing. Any API key that is not empty is let in, unless it was started with one of its own.

Point the app at it: in its own repository's project by the environment, SUME_BASE_URL=<this
address> SUME_API_KEY=anything RENDERS_MEDIA_PRIVATE_HOSTS=<the host of it>; in a project of your
own by its settings, RENDERS |= {"BASE_URL": …, "API_KEY": …, "MEDIA_PRIVATE_HOSTS": …}.

GET    /_sandbox/ledger   what was billed, read and posted, as JSON
GET    /_sandbox/faults   the faults that are still to come
POST   /_sandbox/faults   order one: {"fault": "reset_after", "on": "submit", "times": 1}
DELETE /_sandbox/faults   forget them
"""


class Application:
    """The stand-in without its sockets. Thread-safe, as its parts are."""

    def __init__(self, options: Options, clock: Clock) -> None:
        self.options = options
        self.signer = Signer()
        self.rules = Rules(options, clock, self.signer.path)
        self.reads = Reads(self.rules)
        self.faults = FaultBook(options.fault_rate, options.seed)

    def handle(self, request: Request) -> tuple[Reply, Wire]:
        """Answer a request. Never raises for anything a client can send."""
        request_id = f"req_{uuid.uuid4().hex[:16]}"
        fault: Fault | None = None
        operation = "none"
        try:
            route, parts = find_route(request.method, request.path)
            operation = route.operation
            if operation == "control":
                reply = self._act(route, parts, request)
            else:
                fault = self._fault(operation, request)
                reply = self._answer(route, parts, request, fault, request_id)
        except ApiError as error:
            reply = error.reply(request_id)
        reply = replace(reply, headers={**reply.headers, "x-sume-request-id": request_id})
        # Neither paths nor headers: they may hold signatures and keys.
        level = logging.INFO if operation in WRITES else logging.DEBUG
        name = fault.name if fault else "none"
        logger.log(level, "%s %s: %d, fault: %s", request.method, operation, reply.status, name)
        return reply, effects.wire(fault)

    def _fault(self, operation: str, request: Request) -> Fault | None:
        try:
            fault = self.faults.pick(operation, request.headers.get("x-sandbox-fault"))
        except ValueError as error:
            raise ApiError(422, "unknown_fault", str(error), retryable=False) from error
        if fault is not None:
            self.rules.ledger.note_fault(fault.name, operation, self.rules.now())
        return fault

    def _answer(
        self,
        route: Route,
        parts: list[str],
        request: Request,
        fault: Fault | None,
        request_id: str,
    ) -> Reply:
        ledger = self.rules.ledger
        if route.operation in WRITES:
            ledger.note_post(request.idempotency_key)
        if fault is None:
            return self._admitted(route, parts, request)
        in_its_place = effects.instead(fault, request_id)
        if in_its_place is not None:
            if route.action in JOB_READS:
                ledger.note_read(parts[0], route.action, self.rules.now())
            reply = in_its_place
        else:
            if fault.name == "result_late":
                self.rules.hold_result(parts[0], fault.argument)
            if fault.name in effects.PLANS:
                self.rules.plan(**effects.PLANS[fault.name](fault.argument))
            try:
                reply = self._admitted(route, parts, request)
            except ApiError as error:
                reply = error.reply(request_id)
            reply = effects.changed(fault, reply)
        if route.operation == "status" and effects.hides_hint(fault):
            ledger.set_due(parts[0], None)
        return reply

    def _admitted(self, route: Route, parts: list[str], request: Request) -> Reply:
        if route.operation == "media":
            return self._act(route, parts, request)
        caller = self._authenticated(request)
        headers = self.rules.spend(caller, write=route.operation in WRITES)
        reply = self._act(route, parts, request)
        return replace(reply, headers={**reply.headers, **headers})

    def _authenticated(self, request: Request) -> str:
        """The caller, as a hash of the API key. ApiError 401."""
        scheme, _, token = request.headers.get("authorization", "").strip().partition(" ")
        key = token.strip() if scheme.lower() == "bearer" else ""
        key = key or request.headers.get("x-api-key", "").strip()
        wanted = self.options.key
        right = wanted is None or hmac.compare_digest(key.encode(), wanted.strip().encode())
        if not key or not right:
            raise effects.unauthorized()
        return hashlib.sha256(key.encode()).hexdigest()

    def _act(self, route: Route, parts: list[str], request: Request) -> Reply:
        if route.action == "submit":
            data = self.rules.submit(
                route.kind,
                request.body,
                request.idempotency_key,
                path=request.path,
                base_url=request.base_url,
            )
            return Reply(202, {"data": data})
        answering = self.reads if route.of_reads else self
        reply: Reply = getattr(answering, route.action)(request, *parts)
        return reply

    def status(self, request: Request, job_id: str) -> Reply:
        return _ok(self.rules.status(job_id, base_url=request.base_url))

    def result(self, request: Request, job_id: str) -> Reply:
        return _ok(self.rules.result(job_id, base_url=request.base_url))

    def record(self, request: Request, job_id: str) -> Reply:
        return _ok(self.rules.record(job_id))

    def events(self, request: Request, job_id: str) -> Reply:
        return _ok(self.rules.events(job_id, request.limit(50)))

    def cancel(self, request: Request, job_id: str) -> Reply:
        return _ok(self.rules.cancel(job_id, request.idempotency_key, path=request.path))

    def media(self, request: Request, job_id: str, file_name: str) -> Reply:
        self.rules.ledger.note_read(job_id, "media", self.rules.now())
        signature = request.query.get("signature", "")
        return media_reply(self.rules, self.signer, job_id, file_name, signature)

    def welcome(self, request: Request) -> Reply:
        return Reply(200, body=WELCOME.encode(), content_type="text/plain; charset=utf-8")

    def show_ledger(self, request: Request) -> Reply:
        self.rules.settle()
        return _ok(self.rules.ledger.as_json())

    def show_faults(self, request: Request) -> Reply:
        return _ok({"faults": self.faults.pending(), "known": list(CATALOGUE)})

    def add_fault(self, request: Request) -> Reply:
        fields = read_json_object(request.body)
        unknown = set(fields) - {"fault", "on", "times", "argument"}
        try:
            if unknown:
                raise ValueError(f"Unknown fields: {', '.join(sorted(unknown))}.")
            name, on = fields.get("fault", ""), fields.get("on", "any")
            times, argument = fields.get("times", 1), fields.get("argument")
            self.faults.add(name, on=on, times=times, argument=argument)
        except ValueError as error:
            raise ApiError(422, "unknown_fault", str(error), retryable=False) from error
        return self.show_faults(request)

    def clear_faults(self, request: Request) -> Reply:
        self.faults.clear()
        return self.show_faults(request)


def _ok(data: dict[str, Any]) -> Reply:
    return Reply(200, {"data": data})
