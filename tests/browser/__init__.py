"""Tests in a real browser, on a real stack: `pytest -m browser -n 0`.

`python -m tests.browser.screenshots` takes pictures of the same pages.
"""
