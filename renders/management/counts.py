"""Numbers on a command line."""

import argparse


def count(text: str) -> int:
    """An argparse type: 1 or more."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= 100_000:
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or more, not {text!r}")
    return number
