"""Fixtures that every test may use."""

pytest_plugins = ["renders.testing"]
