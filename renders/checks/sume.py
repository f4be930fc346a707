"""How Sume is reached."""

from collections.abc import Iterator

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from renders import workspaces
from renders.conf import conf
from renders.hosts import host_of, is_inner


def is_stand_in() -> bool:
    """Whether `BASE_URL` leads to this machine or a network of one's own."""
    return is_inner(host_of(conf.BASE_URL))


def faults() -> Iterator[CheckMessage]:
    """The key, and where it is sent."""
    if not workspaces.get(workspaces.DEFAULT).api_key:
        yield Warning(
            "No API key for Sume is set: nothing can be submitted.",
            hint="Set SUME_API_KEY; for a try, run `manage.py sumesandbox` and set any key.",
            id="renders.W001",
        )
    if not (conf.BASE_URL.startswith(("https://", "http://")) and host_of(conf.BASE_URL)):
        yield Error(
            "SUME_BASE_URL is not an http or https address.",
            hint="For instance https://api.sume.com.",
            id="renders.E006",
        )
    elif settings.DEBUG:
        return
    elif is_stand_in():
        yield Warning(
            "SUME_BASE_URL leads to this machine or a private network: to a stand-in, not to Sume.",
            hint="Take SUME_BASE_URL out of the environment to have renders made (and billed).",
            id="renders.W007",
        )
    elif conf.BASE_URL.startswith("http://"):
        yield Error(
            "SUME_BASE_URL is not https: the API key would cross the internet in the clear.",
            hint="Write https://, or take SUME_BASE_URL out of the environment.",
            id="renders.E026",
        )
