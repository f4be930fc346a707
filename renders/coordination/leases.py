"""Token leases in Redis: one holder per name, so that two processes don't do one step at once.

The token changes with every hand-over, so a spent token gets nothing. Its first letter says what
the holder does: a waiting holder can be overtaken, a reading one cannot. Each compare-and-set is
one Lua script. The methods raise `redis.RedisError` if Redis is unreachable, and the caller
decides what follows; `hold` goes on without a lease.
"""

import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from renders.coordination.clients import REDIS_DOWN

logger = logging.getLogger(__name__)

# The first letter of a token: its holder reads, or waits for its time.
_READS, _WAITS = "r", "w"

# Take over with the token that was handed on. A missing key (Redis emptied, lease expired) goes
# to the first caller.
_SWAP = """
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
"""
_HAND_ON = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
"""
_OVERTAKE = """
local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 1, 1) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
"""
_RELEASE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
"""
_ACQUIRE_MANY = """
local won = {}
for i, key in ipairs(KEYS) do
  won[i] = redis.call('SET', key, ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0
end
return won
"""
_RELEASE_MANY = """
local count = 0
for i, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[i] then count = count + redis.call('DEL', key) end
end
return count
"""


class Leases:
    """Leases under one key prefix. `client` is a `redis.Redis`; each `life` is in seconds."""

    def __init__(self, client: Any, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._swap = client.register_script(_SWAP)
        self._hand_on = client.register_script(_HAND_ON)
        self._overtake = client.register_script(_OVERTAKE)
        self._release = client.register_script(_RELEASE)
        self._acquire_many = client.register_script(_ACQUIRE_MANY)
        self._release_many = client.register_script(_RELEASE_MANY)

    def acquire(self, name: str, life: float) -> str | None:
        """The token of a lease that was free and is now taken; None while it is held."""
        token = _fresh(_READS)
        won = self._client.set(self._prefix + name, token, nx=True, px=_millis(life))
        return token if won else None

    def acquire_many(self, names: Sequence[str], life: float) -> dict[str, str]:
        """As `acquire`, for many in one command: the tokens of those that were free."""
        token = _fresh(_READS)
        won: dict[str, str] = {}
        for group in self._together(names):
            keys = [self._prefix + name for name in group]
            flags = self._acquire_many(keys=keys, args=[token, _millis(life)])
            won |= {name: token for name, flag in zip(group, flags, strict=True) if flag}
        return won

    def release_many(self, tokens: Mapping[str, str]) -> None:
        """As `release`, for many in one command."""
        for group in self._together(list(tokens)):
            keys = [self._prefix + name for name in group]
            self._release_many(keys=keys, args=[tokens[name] for name in group])

    def swap(self, name: str, token: str, life: float) -> str | None:
        """Take over a lease with the token handed on: the fresh token, or None if it was spent."""
        return self._rotate(self._swap, name, token, _READS, life)

    def hand_on(self, name: str, token: str, life: float) -> str | None:
        """The token for the next holder; None if the lease is no longer the caller's."""
        return self._rotate(self._hand_on, name, token, _WAITS, life)

    def overtake(self, name: str, life: float) -> str | None:
        """The token of a lease that was free, or that a waiting holder had; None if one reads."""
        return self._rotate(self._overtake, name, _WAITS, _READS, life)

    def release(self, name: str, token: str) -> bool:
        """Release the lease; False if it is no longer the caller's."""
        return bool(self._release(keys=[self._prefix + name], args=[token]))

    def _together(self, names: Sequence[str]) -> Iterable[Sequence[str]]:
        """The names in groups whose keys one script may touch: in a cluster, one group per slot."""
        slot_of = getattr(self._client, "keyslot", None)
        if slot_of is None:
            return [names] if names else []
        groups: dict[int, list[str]] = {}
        for name in names:
            groups.setdefault(slot_of(self._prefix + name), []).append(name)
        return groups.values()

    def _rotate(self, script: Any, name: str, expected: str, does: str, life: float) -> str | None:
        """Replace the token if it, or its first letter, is `expected`; None if it is not."""
        fresh = _fresh(does)
        won = script(keys=[self._prefix + name], args=[expected, fresh, _millis(life)])
        return fresh if won else None


@contextmanager
def hold(leases: Leases, name: str, life: float) -> Iterator[bool]:
    """Hold a lease for one step; yields False while another process holds it.

    If Redis is unreachable, the step runs without a lease and the log says so.
    """
    token = None
    try:
        token = leases.acquire(name, life)
        free = token is not None
    except REDIS_DOWN as error:
        logger.warning(
            "Redis unreachable (%s): render %s goes on without a lease.",
            type(error).__name__,
            name,
        )
        free = True
    try:
        yield free
    finally:
        if token is not None:
            try:
                leases.release(name, token)
            except REDIS_DOWN:
                logger.warning("Redis unreachable: the lease of %s runs out by itself.", name)


class Unshared(Leases):
    """Leases without Redis: every lease is free, because the database already excludes others."""

    def __init__(self) -> None:
        """No client is needed."""

    def acquire(self, name: str, life: float) -> str | None:
        """A token, always."""
        return _fresh(_READS)

    def acquire_many(self, names: Sequence[str], life: float) -> dict[str, str]:
        """A token for each name."""
        return {name: _fresh(_READS) for name in names}

    def swap(self, name: str, token: str, life: float) -> str | None:
        """A fresh token, for any token."""
        return _fresh(_READS)

    def hand_on(self, name: str, token: str, life: float) -> str | None:
        """A token, always."""
        return _fresh(_WAITS)

    def overtake(self, name: str, life: float) -> str | None:
        """A token, always."""
        return _fresh(_READS)

    def release(self, name: str, token: str) -> bool:
        """True: there is nothing to release."""
        return True

    def release_many(self, tokens: Mapping[str, str]) -> None:
        """Do nothing."""


def _fresh(does: str) -> str:
    """A new token of a holder that reads or waits."""
    return does + secrets.token_hex(8)


def _millis(life: float) -> int:
    """Seconds as Redis takes them: whole milliseconds, at least one."""
    return max(1, int(life * 1000))
