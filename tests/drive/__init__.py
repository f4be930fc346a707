"""The drive: renders, workers that are killed, servers that go away, and the accounts after it.

`python -m tests.drive --help`. Not part of the tests that pytest collects.
"""
