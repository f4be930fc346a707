"""This process's clients for Sume, one for each workspace, made from the settings."""

import os
import threading
from collections.abc import Callable

from renders.conf import conf, workspaces
from renders.sume.client import SumeClient
from renders.telemetry import log_context, metrics

# Returns the client of a workspace, so that each render is sent and read with its own key.
Clients = Callable[[str], SumeClient]

_clients: dict[str, tuple[tuple[str, str, float, int], SumeClient]] = {}
_lock = threading.Lock()


def sume(workspace: str) -> SumeClient:
    """The client for a workspace's account at Sume. Raises `UnknownWorkspace`.

    It is kept until the workspace's key or a setting changes. Its sessions are one per process and
    thread.
    """
    account = workspaces.get(workspace)
    timeout, pool_size = conf.REQUEST_TIMEOUT_SECONDS, conf.READS_AT_ONCE
    made_of = (account.api_key, account.base_url, timeout, pool_size)
    with _lock:
        kept = _clients.get(workspace)
        if kept is None or kept[0] != made_of:
            client = SumeClient(
                account.api_key,
                account.base_url,
                timeout=timeout,
                pool_size=pool_size,
                on_reply=note,
            )
            kept = _clients[workspace] = (made_of, client)
        return kept[1]


def note(what: str, seconds: float, request_id: str) -> None:
    """Count one request and add its id to the log lines that follow."""
    metrics.observe("request_duration_seconds", seconds, request=what)
    if request_id:
        log_context.note(sume_request=request_id)


def _unlock() -> None:
    """In a child process: make a new lock, since a lock held by a parent's thread stays locked."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_unlock)
