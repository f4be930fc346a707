"""Helpers for a project's own tests: a stand-in for Sume that runs renders to their end at once.

With pytest, `pytest_plugins = ["renders.testing"]` in `conftest.py` provides the fixture `sume`;
without it, `StandIn` is a context manager. No Redis, broker or worker is needed.
"""

from renders.testing.driving import NotEnded
from renders.testing.standin import StandIn

__all__ = ["NotEnded", "StandIn"]

try:
    import pytest  # noqa: F401  (the app itself does without)
except ImportError:
    pass
else:
    from renders.testing.fixtures import sume

    __all__ += ["sume"]
