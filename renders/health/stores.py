"""Redis: does it answer, and what has beat left there?"""

import time
from typing import Any

from renders.coordination.clients import Cluster
from renders.coordination.connections import REDIS_DOWN, redis_client
from renders.health import database, work
from renders.health.findings import Finding
from renders.telemetry import celery_signs

# Fuller than this, it soon takes nothing more.
FULL = 0.9


def answers() -> list[Finding]:
    """Whether Redis answers."""
    try:
        redis_client().get(celery_signs.KEY)
    except REDIS_DOWN as error:
        return [Finding(f"Redis does not answer ({type(error).__name__}).", "redis-away")]
    return [Finding("Redis answers.")]


def beat() -> list[Finding]:
    """Whether beat sends the sweep, whoever does it then."""
    try:
        told = redis_client().get(celery_signs.KEY)
    except REDIS_DOWN as error:
        return [Finding(f"Redis does not answer ({type(error).__name__}).", "redis-away")]
    try:
        age = time.time() - float(told or "")
    except ValueError:
        return [Finding("Never seen: beat.", "beat-silent")]
    return [
        Finding(f"Beat sent the sweep {work.ago(age)}.", "beat-silent" * (age > work.patience()))
    ]


def keeps() -> list[Finding]:
    """Whether what is put into Redis stays there."""
    try:
        client = redis_client()
        told = client.info(target_nodes="all") if isinstance(client, Cluster) else client.info()
    except REDIS_DOWN as error:
        return [Finding(f"Redis does not tell how it runs ({type(error).__name__}).")]
    return judged(told, "Redis")


def judged(told: dict[str, Any], name: str) -> list[Finding]:
    """What an `INFO` says, or of a cluster those of its nodes."""
    nodes = [one for one in told.values() if isinstance(one, dict) and "redis_version" in one]
    found: dict[str, Finding] = {}
    for info in nodes or [told]:
        policy = str(info.get("maxmemory_policy", "noeviction"))
        used, most = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
        if policy != "noeviction":
            said = f"{name} may forget what it keeps when memory ends (maxmemory-policy {policy})."
            found["redis-may-evict"] = Finding(said, "redis-may-evict")
        if evicted := int(info.get("evicted_keys", 0)):
            said = f"{name} has thrown out {evicted} keys since it started."
            found["redis-evicted"] = Finding(said, "redis-evicted")
        if most and used > FULL * most:
            said = f"{name} uses {used / most:.0%} of its memory ({most / 1e6:,.0f} MB)."
            found["redis-full"] = Finding(said, "redis-full")
        if not int(info.get("aof_enabled", 0)):
            found["redis-forgets"] = Finding(f"{name} writes no append-only file.", "redis-forgets")
    return list(found.values()) or [Finding(f"{name} keeps what it is given.")]


def clock() -> list[Finding]:
    """Whether Redis and this machine agree on the time."""
    client = redis_client()
    if isinstance(client, Cluster):
        return [Finding("The clocks of a cluster are not asked.")]
    asked = time.time()
    seconds, micros = client.time()
    return [database.compared("Redis", seconds + micros / 1e6, asked, time.time())]
