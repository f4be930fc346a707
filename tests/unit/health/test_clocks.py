"""Clocks are compared by a second, whatever the answer takes."""

import pytest

from renders.health import database


@pytest.mark.parametrize(
    ("told", "asked", "answered", "grain", "said"),
    [
        (100.5, 100, 101, 0, ""),
        (102.0, 100, 101, 0, ""),
        (99.0, 100, 101, 0, ""),
        (104.0, 100, 101, 0, "The clock of Redis is 3.0 s ahead of this machine's."),
        (96.0, 100, 101, 0, "The clock of Redis is 4.0 s behind this machine's."),
        (98.0, 100, 101, 1, ""),
        (97.0, 100, 101, 1, "The clock of Redis is 2.0 s behind this machine's."),
    ],
)
def test_a_clock_is_wrong_by_what_no_way_of_the_answer_explains(told, asked, answered, grain, said):
    found = database.compared("Redis", told, asked, answered, grain=grain)

    assert found.code == ("clocks-apart" if said else "")
    if said:
        assert found.said == said
