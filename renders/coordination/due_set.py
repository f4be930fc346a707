"""The due reads, in one sorted set in Redis: member = render id, score = due time.

A reader that takes due renders leaves them in the set, due again when its lease ends, so nothing
exists only in a worker's memory. Times are Unix seconds and passed in. The set can be lost: the
database is the truth, and the sweep adds the missing ids again.

One key is enough below some 50,000 reads a second. Beyond that, use one set for each of N shards,
`sume:polls:{<n>}` with n = crc32(id) % N, and change nothing else, since an id never moves.
All methods raise `redis.RedisError` if Redis is unreachable.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

# Takes the due ids, earliest first, and makes them due again at the end of the lease.
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
# Arguments in threes: id, the end of the lease it was taken with, when it is due next (empty:
# never). A read requested meanwhile has an earlier time, which stays. Only the reader whose lease
# still holds removes an id: a late one would remove it from under the next reader.
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
# Lua can unpack only a limited number of values at once.
MOST = 1000


@dataclass(frozen=True)
class Taken:
    """The due ids, and the end of their lease, which `settle` needs."""

    ids: list[UUID]
    lease_ends: float
    next_due: float | None
    """When the next read is due; None if the set is empty."""


class SortedSet:
    """The sorted set of one site. `client` is a `redis.Redis`."""

    def __init__(self, client: Any, key: str = "sume:polls") -> None:
        self._client = client
        self._key = key
        self._whole = f"{key}:whole"
        self._take = client.register_script(_TAKE)
        self._settle = client.register_script(_SETTLE)

    def __len__(self) -> int:
        return int(self._client.zcard(self._key))

    def add(self, due: Mapping[UUID, float]) -> None:
        """Add reads at these times; an id that is in the set already keeps the earlier time."""
        if due:
            self._client.zadd(self._key, {str(pk): at for pk, at in due.items()}, lt=True)

    def add_missing(self, due: Mapping[UUID, float]) -> int:
        """Add the ids that are not in the set; returns how many."""
        if not due:
            return 0
        scores = {str(pk): at for pk, at in due.items()}
        return int(self._client.zadd(self._key, scores, nx=True))

    def take(self, now: float, limit: int, lease: float) -> Taken:
        """Up to `limit` due ids (at most `MOST`), leased to this caller for `lease` seconds."""
        ends = round(now + lease, 6)
        ids, first = self._take(keys=[self._key], args=[now, ends, min(limit, MOST)])
        pks = [pk for member in ids if (pk := _id(member))]
        if invalid := [member for member in ids if not _id(member)]:
            self._client.zrem(self._key, *invalid)
        return Taken(pks, ends, float(first) if first else None)

    def settle(self, entries: Iterable[tuple[UUID, float, float | None]]) -> None:
        """Set when taken ids are due next. Entries: id, the lease's end, time (None: never)."""
        words = [
            word
            for pk, lease_ends, due in entries
            for word in (str(pk), lease_ends, "" if due is None else round(due, 6))
        ]
        if words:
            self._settle(keys=[self._key], args=words)

    def due_by(self, moment: float, limit: int) -> dict[UUID, float]:
        """Up to `limit` ids due by then, earliest first, with their times; takes no lease."""
        members = self._client.zrange(
            self._key, "-inf", moment, byscore=True, offset=0, num=limit, withscores=True
        )
        return {pk: float(at) for member, at in members if (pk := _id(member))}

    def remove(self, pks: Iterable[UUID]) -> None:
        """Remove these ids."""
        if members := [str(pk) for pk in pks]:
            self._client.zrem(self._key, *members)

    def is_whole(self) -> bool:
        """Whether the set was compared with the database recently and not lost since."""
        return bool(self._client.exists(self._whole))

    def note_whole(self, seconds: float) -> None:
        """Mark the set as compared; the mark is in Redis, so it is lost with the set."""
        self._client.set(self._whole, 1, px=max(1, int(seconds * 1000)))


def _id(member: bytes | str) -> UUID | None:
    """A member as an id; None if it is not one."""
    try:
        return UUID(member.decode() if isinstance(member, bytes) else member)
    except ValueError:
        return None
