"""A year of operation in minutes: the real rules in one process, on a virtual clock, by seeds.

`python -m tests.simulation` runs seeds by hand; `test_seeds` runs some in `pytest`. A seed decides
everything: what people ask for, what breaks and when, and who goes first. One transaction is one
step; locks of PostgreSQL are not simulated (see the crash-point tests in `tests/integration`).
"""
