"""Charts as coordinates of bars, lines and labels; templates turn them into SVG."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

WIDTH, HEIGHT = 420, 200
LEFT, RIGHT, TOP, BOTTOM = 54, 8, 10, 22
MOST_LABELS = 5
DOT = 2.5
CIRCLE = f"a{DOT} {DOT} 0 1 0 {2 * DOT} 0a{DOT} {DOT} 0 1 0 -{2 * DOT} 0"


@dataclass(frozen=True)
class Mark:
    """A bar, or a line of the grid with its label."""

    x: float
    y: float
    width: float = 0
    height: float = 0
    sort: str = ""
    label: str = ""


@dataclass(frozen=True)
class Chart:
    """A drawing of `WIDTH` by `HEIGHT`. Lines are SVG paths, with gaps where values are missing."""

    rows: list[Mark]
    columns: list[Mark]
    bars: list[Mark] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    base: int = HEIGHT - BOTTOM


def bars(
    labels: Sequence[str], stacks: Sequence[dict[str, float]], shown: Callable[[float], str]
) -> Chart:
    """A bar for each label, stacked from the bottom."""
    scale = _scale(max((sum(stack.values()) for stack in stacks), default=0))
    step = _step(len(labels))
    marks = []
    for place, stack in enumerate(stacks):
        height = 0.0
        for sort, value in stack.items():
            if value:
                top, bottom = _y(height + value, scale), _y(height, scale)
                width = max(step * 0.8, 1)
                marks.append(Mark(_x(place, step), top, round(width, 2), bottom - top, sort))
                height += value
    return Chart(_rows(scale, shown), _columns(labels), bars=marks)


def lines(
    labels: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    shown: Callable[[float], str],
) -> Chart:
    """A line for each series, through the middle of each label's column."""
    scale = _scale(max((v for values in series.values() for v in values if v), default=0))
    step = _step(len(labels))
    paths = []
    for sort, values in series.items():
        path, pen_down = [], False
        for place, value in enumerate(values):
            if value is not None:
                x, y = _x(place, step) + step * 0.4, _y(value, scale)
                if not pen_down and (place + 1 == len(values) or values[place + 1] is None):
                    path.append(
                        f"M{x - DOT:.1f} {y:.1f}" + CIRCLE
                    )  # a lone value: a line would be invisible
                else:
                    path.append(f"{'L' if pen_down else 'M'}{x:.1f} {y:.1f}")
            pen_down = value is not None
        if path:
            paths.append((sort, "".join(path)))
    return Chart(_rows(scale, shown), _columns(labels), lines=paths)


def _step(number: int) -> float:
    return (WIDTH - LEFT - RIGHT) / max(number, 1)


def _x(place: int, step: float) -> float:
    return round(LEFT + place * step, 2)


def _y(value: float, scale: list[float]) -> float:
    return round(HEIGHT - BOTTOM - value / scale[-1] * (HEIGHT - TOP - BOTTOM), 2)


def _scale(most: float) -> list[float]:
    """Three to six round numbers from 0 to at least `most`."""
    if most <= 0:
        return [0, 1]
    size = 10 ** math.floor(math.log10(most))
    unit = next(size * part for part in (0.2, 0.25, 0.5, 1, 2) if most <= size * part * 5)
    return [round(unit * number, 6) for number in range(math.ceil(most / unit) + 1)]


def _rows(scale: list[float], shown: Callable[[float], str]) -> list[Mark]:
    return [Mark(LEFT, _y(value, scale), label=shown(value)) for value in scale]


def _columns(labels: Sequence[str]) -> list[Mark]:
    every = math.ceil(len(labels) / MOST_LABELS)
    step = _step(len(labels))
    # From the newest back: readers look there first, and a label at the left edge would be cut.
    places = range(len(labels) - 1 - every // 2, -1, -every) if labels else ()
    return [Mark(_x(place, step) + step * 0.4, HEIGHT - 6, label=labels[place]) for place in places]
