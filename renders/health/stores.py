"""Redis: whether it answers, keeps its data and agrees on the time; and whether beat is alive.

Beat leaves a time in Redis whenever it sends the sweep.
"""

import time
from typing import Any

from renders.coordination.clients import Cluster
from renders.coordination.connections import REDIS_DOWN, redis_client
from renders.health import database, work
from renders.health.findings import Finding
from renders.telemetry import celery_signs

# Above this share of its memory, Redis will soon refuse writes.
FULL = 0.9


def answers() -> list[Finding]:
    """Whether Redis answers."""
    try:
        redis_client().get(celery_signs.KEY)
    except REDIS_DOWN as error:
        return [Finding(f"Redis does not answer ({type(error).__name__}).", "redis-away")]
    return [Finding("Redis answers.")]


def beat() -> list[Finding]:
    """Whether beat sends the sweep. Whether a worker runs it is `work.sweep`'s question."""
    try:
        sent_at = redis_client().get(celery_signs.KEY)
    except REDIS_DOWN as error:
        return [Finding(f"Redis does not answer ({type(error).__name__}).", "redis-away")]
    try:
        age = time.time() - float(sent_at or "")
    except ValueError:
        return [Finding("Never seen: beat.", "beat-silent")]
    return [
        Finding(f"Beat sent the sweep {work.ago(age)}.", "beat-silent" * (age > work.patience()))
    ]


def keeps() -> list[Finding]:
    """Whether Redis keeps its data."""
    try:
        client = redis_client()
        info = client.info(target_nodes="all") if isinstance(client, Cluster) else client.info()
    except REDIS_DOWN as error:
        return [Finding(f"Redis does not tell how it runs ({type(error).__name__}).")]
    return judged(info, "Redis")


def judged(told: dict[str, Any], name: str) -> list[Finding]:
    """The findings from the reply to `INFO`; for a cluster, from the replies of its nodes."""
    nodes = [node for node in told.values() if isinstance(node, dict) and "redis_version" in node]
    findings: dict[str, Finding] = {}
    for info in nodes or [told]:
        policy = str(info.get("maxmemory_policy", "noeviction"))
        used, most = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
        if policy != "noeviction":
            said = f"{name} may forget what it keeps when memory ends (maxmemory-policy {policy})."
            findings["redis-may-evict"] = Finding(said, "redis-may-evict")
        if evicted := int(info.get("evicted_keys", 0)):
            said = f"{name} has thrown out {evicted} keys since it started."
            findings["redis-evicted"] = Finding(said, "redis-evicted")
        if most and used > FULL * most:
            said = f"{name} uses {used / most:.0%} of its memory ({most / 1e6:,.0f} MB)."
            findings["redis-full"] = Finding(said, "redis-full")
        if not int(info.get("aof_enabled", 0)):
            said = f"{name} writes no append-only file."
            findings["redis-forgets"] = Finding(said, "redis-forgets")
    return list(findings.values()) or [Finding(f"{name} keeps what it is given.")]


def clock() -> list[Finding]:
    """Whether Redis and this machine agree on the time."""
    client = redis_client()
    if isinstance(client, Cluster):
        return [Finding("The clocks of a cluster are not asked.")]
    asked = time.time()
    seconds, micros = client.time()
    return [database.compared("Redis", seconds + micros / 1e6, asked, time.time())]
