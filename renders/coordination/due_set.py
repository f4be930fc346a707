"""The renders that are to be read, in one sorted set in Redis: member = id, score = due time.

Whoever takes what is due leaves it in the set, due again when his lease is over: so nothing
lives in a worker's memory alone. Times are Unix seconds, and passed in. The set can be lost; the
database knows better, and the sweep puts back what is missing.

One key is enough below some 50,000 reads a second. Beyond that, take one set for each of N
shards: `sume:polls:{<n>}` with n = crc32(id) % N, all else as it is, since an id never moves.
Raises `redis.RedisError` where Redis cannot be reached.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

# Everything due, the earliest first, is due again at the end of the lease.
_TAKE = """
local ids = redis.call('ZRANGE', KEYS[1], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[3])
if #ids > 0 then
  local scores = {}
  for i, id in ipairs(ids) do
    scores[2 * i - 1], scores[2 * i] = ARGV[2], id
  end
  redis.call('ZADD', KEYS[1], unpack(scores))
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {ids, first[2] or ''}
"""
# In threes: id, the lease's end it was taken with, when it is due next (nothing: never).
# Who has asked for a read meanwhile has moved it before that, and keeps that. Only who still
# has it drops it: a reader that comes too late would drop what the next one goes on with.
_SETTLE = """
for i = 1, #ARGV, 3 do
  local id, lease, due = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local held = redis.call('ZSCORE', KEYS[1], id)
  local ours = held and tonumber(held) == tonumber(lease)
  if due == '' then
    if ours then redis.call('ZREM', KEYS[1], id) end
  elseif not held or ours or tonumber(held) > tonumber(due) then
    redis.call('ZADD', KEYS[1], due, id)
  end
end
"""
# What Lua can unpack at once is bounded.
MOST = 1000


@dataclass(frozen=True)
class Taken:
    """What is due, and the lease's end that `settle` needs to know."""

    ids: list[UUID]
    lease_ends: float
    next_due: float | None
    """When the next is due; None where the set is empty."""


class SortedSet:
    """The set of one site. `client` is a `redis.Redis`."""

    def __init__(self, client: Any, key: str = "sume:polls") -> None:
        self._client = client
        self._key = key
        self._whole = f"{key}:whole"
        self._take = client.register_script(_TAKE)
        self._settle = client.register_script(_SETTLE)

    def __len__(self) -> int:
        return int(self._client.zcard(self._key))

    def add(self, due: Mapping[UUID, float]) -> None:
        """Have these read then; one that is in the set already, at the earlier time."""
        if due:
            self._client.zadd(self._key, {str(pk): at for pk, at in due.items()}, lt=True)

    def add_missing(self, due: Mapping[UUID, float]) -> int:
        """Put back those that are not in the set; returns how many."""
        if not due:
            return 0
        scores = {str(pk): at for pk, at in due.items()}
        return int(self._client.zadd(self._key, scores, nx=True))

    def take(self, now: float, limit: int, lease: float) -> Taken:
        """Up to `limit` that are due (at most `MOST`), for `lease` seconds nobody else's."""
        ends = round(now + lease, 6)
        ids, first = self._take(keys=[self._key], args=[now, ends, min(limit, MOST)])
        known = [pk for member in ids if (pk := _id(member))]
        if strangers := [member for member in ids if not _id(member)]:
            self._client.zrem(self._key, *strangers)
        return Taken(known, ends, float(first) if first else None)

    def settle(self, entries: Iterable[tuple[UUID, float, float | None]]) -> None:
        """Say when those taken are due next: id, the lease's end, the time (None: never)."""
        words = [
            word
            for pk, lease_ends, due in entries
            for word in (str(pk), lease_ends, "" if due is None else round(due, 6))
        ]
        if words:
            self._settle(keys=[self._key], args=words)

    def due_by(self, moment: float, limit: int) -> dict[UUID, float]:
        """Up to `limit` that are due by then, the earliest first, and when; nobody takes them."""
        found = self._client.zrange(
            self._key, "-inf", moment, byscore=True, offset=0, num=limit, withscores=True
        )
        return {pk: float(at) for member, at in found if (pk := _id(member))}

    def remove(self, pks: Iterable[UUID]) -> None:
        """Forget these."""
        if members := [str(pk) for pk in pks]:
            self._client.zrem(self._key, *members)

    def is_whole(self) -> bool:
        """Whether the set was compared with the database lately, and not lost since."""
        return bool(self._client.exists(self._whole))

    def note_whole(self, seconds: float) -> None:
        """Note that it is; whoever empties Redis takes the note along."""
        self._client.set(self._whole, 1, px=max(1, int(seconds * 1000)))


def _id(member: bytes | str) -> UUID | None:
    """The id that a member is; None for what somebody else put in."""
    try:
        return UUID(member.decode() if isinstance(member, bytes) else member)
    except ValueError:
        return None
