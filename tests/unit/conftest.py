"""What unit tests share."""

import pytest

from tests.servers import REDIS


@pytest.fixture(autouse=True)
def _no_redis():
    """Nothing listens where the settings say, whatever ran in this process before."""
    for server in REDIS:
        server.halt()


@pytest.fixture
def followed(monkeypatch):
    """The steps that were handed to the scheduler."""
    steps = []
    monkeypatch.setattr("renders.scheduling.follow", steps.extend)
    return steps
