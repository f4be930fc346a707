"""Errors that end the demo. Each message says what happened and what to do."""


class DemoError(Exception):
    """The demo cannot start or continue."""


class ChildDied(DemoError):
    """A process that the demo needs has ended unexpectedly."""


class NotReady(DemoError):
    """A process runs, but did not answer in time."""


class Interrupted(DemoError):
    """A person (or the system) asked the demo to end."""
