"""The pytest fixture of `renders.testing`."""

from collections.abc import Iterator

import pytest

from renders.testing.standin import StandIn


@pytest.fixture
def sume() -> Iterator[StandIn]:
    """A stand-in for Sume for one test: no bills, no waiting, faults on request."""
    with StandIn() as sume:
        yield sume
