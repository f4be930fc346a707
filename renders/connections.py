"""The process's connections to Sume and Redis, made from the settings at first use."""

from functools import lru_cache

import redis

from renders.client import SumeClient
from renders.conf import conf

# Outages of Redis that the app lives through: its lease and its gate are cost savers.
REDIS_DOWN = (redis.ConnectionError, redis.TimeoutError, redis.ResponseError, OSError)


def sume() -> SumeClient:
    """The client for Sume. Sessions inside are one per process and thread."""
    return _sume(conf.API_KEY, conf.BASE_URL, conf.REQUEST_TIMEOUT_SECONDS)


def redis_client() -> "redis.Redis":
    """The client for Redis, with short time-outs so that an outage costs little."""
    return _redis(conf.REDIS_URL)


@lru_cache(maxsize=8)
def _sume(api_key: str, base_url: str, timeout: float) -> SumeClient:
    return SumeClient(api_key, base_url, timeout=timeout)


@lru_cache(maxsize=8)
def _redis(url: str) -> "redis.Redis":
    return redis.Redis.from_url(
        url,
        socket_timeout=2,
        socket_connect_timeout=2,
        health_check_interval=25,
        retry=None,
    )
