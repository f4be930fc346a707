"""What pytest finds in `renders.testing`."""

from collections.abc import Iterator

import pytest

from renders.testing.standin import StandIn


@pytest.fixture
def sume() -> Iterator[StandIn]:
    """Sume for one test: bills nothing, waits for nothing, and does as it is told."""
    with StandIn() as sume:
        yield sume
