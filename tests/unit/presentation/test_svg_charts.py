"""Charts lie within their frame, and say nothing where nothing is known."""

import re

import pytest

from renders.presentation.svg_charts import HEIGHT, LEFT, RIGHT, TOP, WIDTH, bars, lines

BASE = HEIGHT - 22


@pytest.mark.parametrize("most", [0.3, 1, 7, 99, 101, 4096, 123_456])
@pytest.mark.parametrize("number", [1, 24, 168])
def test_bars_stay_within_the_frame(number, most):
    chart = bars(["x"] * number, [{"a": most / 2, "b": most / 2}] * number, str)

    assert len(chart.bars) == 2 * number
    for bar in chart.bars:
        assert bar.x >= LEFT and bar.x + bar.width <= WIDTH - RIGHT
        assert TOP <= bar.y <= bar.y + bar.height <= BASE + 0.01
    assert 3 <= len(chart.rows) <= 7
    assert 1 <= len(chart.columns) <= 6


def test_what_lies_on_another_begins_where_that_ends():
    low, high = bars(["x"], [{"a": 3, "none": 0, "b": 2}], str).bars

    assert low.y + low.height == BASE
    assert high.y + high.height == pytest.approx(low.y)
    assert high.height == pytest.approx(low.height * 2 / 3, abs=0.02)


def test_a_line_ends_where_nothing_is_known():
    [(_, path)] = lines(list("abcd"), {"x": [1, 2, None, 3]}, str).lines

    assert re.sub(r"[\d. ]", "", path) == "MLMaa-"


@pytest.mark.parametrize("values", [[], [None, None]])
def test_nothing_known_draws_nothing(values):
    labels = ["x"] * len(values)

    assert lines(labels, {"x": values}, str).lines == []
    assert bars(labels, [{} for _ in values], str).bars == []
