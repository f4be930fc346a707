"""A model of Redis with what `renders` asks of it: times to live, emptied, away.

`test_redis_model` compares it with a real server, command by command.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import redis

from renders.coordination import due_set, leases
from renders.limits import read_quota

Script = Callable[["RedisModel", Sequence[str], Sequence[Any]], Any]


class RedisModel:
    """The commands of `redis.Redis`. `now` returns seconds; `point` is called around each one."""

    def __init__(
        self, now: Callable[[], float], point: Callable[[str], None] = lambda what: None
    ) -> None:
        self._now, self._point = now, point
        self._values: dict[str, tuple[bytes, float]] = {}
        self._sets: dict[str, dict[str, float]] = {}
        self.away = False

    def empty(self) -> None:
        """Lose everything, as a server does that is restarted without a file."""
        self._values.clear()
        self._sets.clear()

    def _command(self, do: Callable[[], Any]) -> Any:
        self._point("redis")
        if self.away:
            raise redis.ConnectionError("Redis is away.")
        answer = do()
        self._point("redis answered")
        return answer

    def get(self, key: str) -> bytes | None:
        return self._command(lambda: self.peek(key))

    def set(self, key: str, value: Any, nx: bool = False, px: int | None = None) -> bool | None:
        return self._command(lambda: self.put(key, value, px, nx))

    def delete(self, key: str) -> int:
        return self._command(lambda: self.drop(key))

    def exists(self, key: str) -> int:
        return self._command(lambda: int(self.peek(key) is not None))

    def zadd(
        self, key: str, scores: Mapping[str, float], nx: bool = False, lt: bool = False
    ) -> int:
        def add() -> int:
            members, before = self.members(key), len(self.members(key))
            for member, score in scores.items():
                held = members.get(member)
                if held is None or not (nx or (lt and score >= held)):
                    members[member] = score
            return len(members) - before

        return self._command(add)

    def zcard(self, key: str) -> int:
        return self._command(lambda: len(self.members(key)))

    def zrem(self, key: str, *ids: str) -> int:
        return self._command(lambda: sum(self.members(key).pop(m, None) is not None for m in ids))

    def zrange(
        self,
        key: str,
        start: Any,
        end: float,
        *,
        byscore: bool,
        offset: int,
        num: int,
        withscores: bool,
    ) -> list[Any]:
        def found() -> list[Any]:
            pairs = self.in_order(key, float(end))[offset : offset + num]
            return [(member.encode(), score) for member, score in pairs]

        assert byscore and withscores and start == "-inf"
        return self._command(found)

    def register_script(self, text: str) -> Callable[..., Any]:
        script = SCRIPTS[text]
        return lambda keys, args: self._command(lambda: script(self, keys, args))

    # --- For the scripts, which are one command each ---------------------------------------

    def peek(self, key: str) -> bytes | None:
        value, ends = self._values.get(key, (None, 0.0))
        if value is not None and ends <= self._now():
            del self._values[key]
            return None
        return value

    def put(self, key: str, value: Any, px: int | None = None, nx: bool = False) -> bool | None:
        if nx and self.peek(key) is not None:
            return None
        ends = math.inf if px is None else self._now() + int(px) / 1000
        self._values[key] = str(value).encode() if not isinstance(value, bytes) else value, ends
        return True

    def drop(self, key: str) -> int:
        there = self.peek(key) is not None
        self._values.pop(key, None)
        return int(there)

    def members(self, key: str) -> dict[str, float]:
        return self._sets.setdefault(key, {})

    def in_order(self, key: str, until: float) -> list[tuple[str, float]]:
        """The members with a score up to `until`, the lowest first."""
        pairs = [pair for pair in self.members(key).items() if pair[1] <= until]
        return sorted(pairs, key=lambda pair: (pair[1], pair[0]))


def _rotate(may: Callable[[bytes | None, bytes], bool]) -> Script:
    def script(model: RedisModel, keys: Sequence[str], args: Sequence[Any]) -> int:
        expected, fresh, life = args
        if not may(model.peek(keys[0]), str(expected).encode()):
            return 0
        model.put(keys[0], fresh, int(life))
        return 1

    return script


def _release(model: RedisModel, keys: Sequence[str], args: Sequence[Any]) -> int:
    held = model.peek(keys[0])
    return model.drop(keys[0]) if held == str(args[0]).encode() else 0


def _acquire_many(model: RedisModel, keys: Sequence[str], args: Sequence[Any]) -> list[int]:
    return [int(bool(model.put(key, args[0], int(args[1]), nx=True))) for key in keys]


def _release_many(model: RedisModel, keys: Sequence[str], args: Sequence[Any]) -> int:
    return sum(_release(model, [key], [token]) for key, token in zip(keys, args, strict=True))


def _take(model: RedisModel, keys: Sequence[str], args: Sequence[Any]) -> list[Any]:
    until, lease_ends, limit = float(args[0]), float(args[1]), int(args[2])
    ids = [member for member, _ in model.in_order(keys[0], until)[:limit]]
    model.members(keys[0]).update(dict.fromkeys(ids, lease_ends))
    first = model.in_order(keys[0], math.inf)[:1]
    return [[one.encode() for one in ids], str(first[0][1]).encode() if first else b""]


def _settle(model: RedisModel, keys: Sequence[str], args: Sequence[Any]) -> None:
    members = model.members(keys[0])
    for pk, lease, due in _threes(args):
        held = members.get(pk)
        ours = held is not None and held == float(lease)
        if due == "":
            if ours:
                del members[pk]
        elif held is None or ours or held > float(due):
            members[pk] = float(due)


def _threes(args: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (args[i : i + 3] for i in range(0, len(args), 3))


def _take_reads(model: RedisModel, keys: Sequence[str], args: Sequence[Any]) -> int:
    used = int(model.peek(keys[0]) or 0)
    taken = max(0, min(int(args[0]) - used, int(args[1])))
    if taken:
        model.put(keys[0], used + taken, int(args[2]) * 1000)
    return taken


SCRIPTS: dict[str, Script] = {
    leases._SWAP: _rotate(lambda held, expected: held in (None, expected)),
    leases._HAND_ON: _rotate(lambda held, expected: held == expected),
    leases._OVERTAKE: _rotate(lambda held, expected: held is None or held[:1] == expected),
    leases._RELEASE: _release,
    leases._ACQUIRE_MANY: _acquire_many,
    leases._RELEASE_MANY: _release_many,
    due_set._TAKE: _take,
    due_set._SETTLE: _settle,
    read_quota._TAKE: _take_reads,
}
