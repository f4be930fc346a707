"""Token leases in Redis: one holder per name, handed on from hop to hop.

The token changes with every hand-over, so whoever comes with a spent one gets nothing. It tells
as well what its holder does: one that waits for its time can be overtaken, one that reads cannot.
Each compare and what it allows happen in one Lua script. Raises `redis.RedisError` where Redis
cannot be reached; what that means is for the caller to say.
"""

import secrets
from typing import Any

# What a token begins with.
_READS, _WAITS = "r", "w"

# Take over with the token that was handed on; a key that is gone (Redis emptied, lease run
# out) is free for whoever comes first.
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


class Leases:
    """Leases under one key prefix. `client` is a `redis.Redis`; lives are in seconds."""

    def __init__(self, client: Any, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._swap = client.register_script(_SWAP)
        self._hand_on = client.register_script(_HAND_ON)
        self._overtake = client.register_script(_OVERTAKE)
        self._release = client.register_script(_RELEASE)

    def acquire(self, name: str, life: float) -> str | None:
        """Take a free lease; returns its token, or None while somebody holds it."""
        token = _fresh(_READS)
        won = self._client.set(self._prefix + name, token, nx=True, px=_millis(life))
        return token if won else None

    def swap(self, name: str, token: str, life: float) -> str | None:
        """Take over a lease with the token handed on; returns a fresh one, None if spent."""
        return self._rotate(self._swap, name, token, _READS, life)

    def hand_on(self, name: str, token: str, life: float) -> str | None:
        """Make the token for the next holder; None where the lease is no longer ours."""
        return self._rotate(self._hand_on, name, token, _WAITS, life)

    def overtake(self, name: str, life: float) -> str | None:
        """Take a lease that is free, or handed on to one that still waits; None if one reads."""
        return self._rotate(self._overtake, name, _WAITS, _READS, life)

    def release(self, name: str, token: str) -> bool:
        """Give the lease back, if it is still ours."""
        return bool(self._release(keys=[self._prefix + name], args=[token]))

    def _rotate(self, script: Any, name: str, known: str, does: str, life: float) -> str | None:
        fresh = _fresh(does)
        won = script(keys=[self._prefix + name], args=[known, fresh, _millis(life)])
        return fresh if won else None


def _fresh(does: str) -> str:
    return does + secrets.token_hex(8)


def _millis(life: float) -> int:
    return max(1, int(life * 1000))
