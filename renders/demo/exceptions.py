"""What keeps the demo from running. The message says what happened and what to do."""


class DemoError(Exception):
    """The demo cannot go on."""


class ChildDied(DemoError):
    """A process that the demo needs ended by itself."""


class NotReady(DemoError):
    """A process runs but does not answer in time."""


class Interrupted(DemoError):
    """A person (or the system) asked the demo to end."""
