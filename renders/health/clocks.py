"""Do all machines agree on the time? Compared in Unix seconds."""

from renders.health.findings import Finding

# The minute of Sume's plan is counted by the clocks of all workers.
MOST_SECONDS = 1.0


def compared(
    whose: str, told: float, asked: float, answered: float, *, grain: float = 0.0
) -> Finding:
    """What a clock says between two moments of ours; `grain` is how coarsely it tells the time."""
    ahead = max(0.0, told - answered) or min(0.0, told + grain - asked)
    if abs(ahead) <= MOST_SECONDS:
        return Finding(f"The clock of {whose} agrees with this machine's.")
    return apart(whose, ahead, "this machine's")


def apart(whose: str, ahead: float, other: str) -> Finding:
    """A clock that is so many seconds ahead of another, or behind it (below 0)."""
    word = "ahead of" if ahead > 0 else "behind"
    return Finding(f"The clock of {whose} is {abs(ahead):.1f} s {word} {other}.", "clocks-apart")
