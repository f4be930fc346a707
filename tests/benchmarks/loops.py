"""What the scheduler is compared with: two loops of one thread, as short as they can be written.

`python -m tests.benchmarks.loops bare|plain URL SECONDS JOBS REDIS_URL CA_FILE` reads for so long
and prints, as JSON, how many reads, seconds of the processor's time, seconds of the clock.
"""

import json
import sys
import time
from collections.abc import Callable

import redis
import requests

HEADERS = {"Authorization": "Bearer measured-with-and-for-nothing-else"}
TIMEOUT_SECONDS = 30
WARM_SECONDS = 0.5
SET = "plain:polls"


def bare(url: str, jobs: int, trusted: str) -> Callable[[], None]:
    """One read on a kept connection, and nothing else."""
    session = requests.Session()
    session.headers.update(HEADERS)
    session.verify = trusted
    number = 0

    def read() -> None:
        nonlocal number
        number = (number + 1) % jobs
        session.get(f"{url}/v1/jobs/job-{number}/status", timeout=TIMEOUT_SECONDS).json()

    return read


def plain(url: str, jobs: int, trusted: str, redis_url: str) -> Callable[[], None]:
    """Out of the sorted set, a read on a new connection, back into the sorted set."""
    client = redis.Redis.from_url(redis_url)
    client.delete(SET)
    client.zadd(SET, {f"job-{number}": 0 for number in range(jobs)})

    def read() -> None:
        [job] = client.zrange(SET, "-inf", time.time(), byscore=True, offset=0, num=1)
        client.zrem(SET, job)
        reply = requests.get(
            f"{url}/v1/jobs/{job.decode()}/status",
            headers=HEADERS,
            timeout=TIMEOUT_SECONDS,
            verify=trusted,
        ).json()
        hint = min(reply["data"]["next_poll_after_seconds"], 0)  # always something is due
        client.zadd(SET, {job: time.time() + hint})

    return read


def main() -> None:
    """Read, count, print."""
    which, url, seconds, jobs, redis_url, trusted = sys.argv[1:]
    if which == "bare":
        read = bare(url, int(jobs), trusted)
    else:
        read = plain(url, int(jobs), trusted, redis_url)
    end = time.monotonic() + WARM_SECONDS
    while time.monotonic() < end:
        read()
    count, processor, start = 0, time.process_time(), time.monotonic()
    while time.monotonic() - start < float(seconds):
        read()
        count += 1
    spent = time.process_time() - processor, time.monotonic() - start
    sys.stdout.write(json.dumps([count, *spent]))


if __name__ == "__main__":
    main()
