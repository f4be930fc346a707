"""The clients for Sume of this process, one for each workspace, made from the settings."""

import os
import threading
from collections.abc import Callable

from renders.conf import conf, workspaces
from renders.sume.client import SumeClient
from renders.telemetry import log_context, metrics

# Gives the client of a workspace, so that each render is sent and read with its own key.
Clients = Callable[[str], SumeClient]

_clients: dict[str, tuple[tuple[str, str, float, int], SumeClient]] = {}
_lock = threading.Lock()


def sume(workspace: str) -> SumeClient:
    """The client for one account at Sume. Sessions inside are one per process and thread.

    Kept until the workspace's key changes. Raises `UnknownWorkspace`.
    """
    account = workspaces.get(workspace)
    timeout, pool_size = conf.REQUEST_TIMEOUT_SECONDS, conf.READS_AT_ONCE
    made_of = (account.api_key, account.base_url, timeout, pool_size)
    with _lock:
        known = _clients.get(workspace)
        if known is None or known[0] != made_of:
            client = SumeClient(
                account.api_key,
                account.base_url,
                timeout=timeout,
                pool_size=pool_size,
                on_reply=note,
            )
            known = _clients[workspace] = (made_of, client)
        return known[1]


def note(what: str, seconds: float, request_id: str) -> None:
    """Count one request, and name it on the log lines that follow."""
    metrics.observe("request_duration_seconds", seconds, request=what)
    if request_id:
        log_context.note(sume_request=request_id)


def _unlock() -> None:
    """In a child: what a thread of its parent's held, nobody gives back."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_unlock)
