"""What unit tests share."""

import pytest


@pytest.fixture
def followed(monkeypatch):
    """The steps that were handed to the scheduler."""
    steps = []
    monkeypatch.setattr("renders.scheduling.follow", steps.extend)
    return steps
