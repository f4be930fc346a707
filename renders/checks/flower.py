"""Checks of Flower's settings: anybody with access to it can run any task, and so spend money."""

import os
from collections.abc import Iterator

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from renders.conf import conf
from renders.conf.networks import host_of, is_inner, is_loopback

SHORTEST_PASSWORD = 8
ON = {"1", "true", "yes", "on", "t", "y"}
# Environment variables that turn on authentication (names, not secrets).
AUTH_VARIABLES = ("FLOWER_BASIC_AUTH", "FLOWER_AUTH")


def faults() -> Iterator[CheckMessage]:
    """Faults in this process's environment. Flower's command line can override it."""
    if settings.DEBUG:
        return
    if _given("FLOWER_UNAUTHENTICATED_API").lower() in ON:
        yield Error(
            "FLOWER_UNAUTHENTICATED_API opens Flower's API: anybody could have tasks run.",
            hint="Take it out of the environment, and set FLOWER_BASIC_AUTH.",
            id="renders.E056",
        )
    address = _given("FLOWER_ADDRESS")
    if address and not is_loopback(address) and not any(map(_given, AUTH_VARIABLES)):
        yield Error(
            "FLOWER_ADDRESS opens Flower to others, and no password is set.",
            hint="Set FLOWER_BASIC_AUTH to name:password, or take FLOWER_ADDRESS out.",
            id="renders.E057",
        )
    if any(_can_be_guessed(pair) for pair in _given("FLOWER_BASIC_AUTH").split(",") if pair):
        yield Warning(
            "A password in FLOWER_BASIC_AUTH can be guessed.",
            hint=f"Take one of {SHORTEST_PASSWORD} characters or more, unlike the name; "
            "commas stand between two pairs only.",
            id="renders.W058",
        )
    if conf.FLOWER_URL.startswith("http://") and not is_inner(host_of(conf.FLOWER_URL)):
        yield Warning(
            "FLOWER_URL is not https: Flower's password crosses the internet in the clear.",
            hint="Put Flower behind a proxy with https, and set RENDERS_FLOWER_URL to that.",
            id="renders.W059",
        )


def _given(name: str) -> str:
    return os.environ.get(name, "").strip()


def _can_be_guessed(pair: str) -> bool:
    name, _, password = pair.strip().partition(":")
    guesses = {name.lower(), "password"}
    return len(password) < SHORTEST_PASSWORD or password.lower() in guesses
