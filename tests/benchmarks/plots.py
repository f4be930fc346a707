"""The pictures for the README. Values from light to dark stay apart in print and for all eyes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

OURS, THEIRS, GOAL = "#1f6f8b", "#b8c4c9", "#c0392b"
WIDTH, DPI = 8.0, 160  # 1280 pixels


def draw(folder: Path, results: Mapping[str, Any]) -> list[Path]:
    """A picture for each measurement that is there and can be drawn; their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, picture in PICTURES.items():
        if name in results:
            figure, axes = pyplot.subplots(figsize=(WIDTH, 4.2), dpi=DPI, layout="constrained")
            picture(axes, results[name])
            axes.spines[["top", "right"]].set_visible(False)
            path = folder / f"benchmark-{name}.png"
            figure.savefig(path)
            pyplot.close(figure)
            drawn.append(path)
    return drawn


def _throughput(axes: Any, found: Mapping[str, Any]) -> None:
    bare = found["bare loop"].each
    safe = {name: used for name, used in found.items() if not name.endswith(", TLS")}
    names = sorted(safe, key=lambda name: bare / safe[name].each)
    shares = [bare / safe[name].each for name in names]
    colors = [THEIRS if name.endswith("loop") else OURS for name in names]
    bars = axes.barh(names, shares, color=colors)
    axes.bar_label(bars, [f" {share:.2f}" for share in shares])
    axes.axvline(0.8, color=GOAL, linestyle="--", label="goal of the sorted set: 0.8")
    axes.set_xlabel("reads for each second of the processor (bare loop = 1)")
    axes.set_title("Reads against a loop of one thread that does nothing else")
    axes.margins(x=0.12)
    axes.legend(loc="lower right", frameon=False)


def _slots(axes: Any, found: Mapping[str, Any]) -> None:
    slots, rates = list(found["rates"]), list(found["rates"].values())
    most = [number / 0.2 for number in slots]
    axes.plot(slots, most, color=THEIRS, linestyle="--", label="slots / 0.2 s: cannot be more")
    axes.plot(slots, rates, color=OURS, marker="o", label="sorted set (pollrenders)")
    axes.axhline(found["loops"]["bare"], color=GOAL, linestyle=":", label="bare loop")
    axes.set_xlabel("slots (reads that one process has under way)")
    axes.set_ylabel("reads per second")
    axes.set_ylim(bottom=0)
    axes.set_title("Replies that take 200 ms")
    axes.legend(loc="upper left", frameon=False)


def _punctuality(axes: Any, found: Sequence[Any]) -> None:
    names = [f"{late.waiting:,} waiting\n{late.load:.0%} load" for late in found]
    places = list(range(len(found)))
    for shift, color, label, values in (
        (-0.2, THEIRS, "p50", [late.half for late in found]),
        (0.2, OURS, "p99", [late.nearly_all for late in found]),
    ):
        bars = axes.bar([place + shift for place in places], values, 0.4, color=color, label=label)
        axes.bar_label(bars, [f"{value:.0f}" for value in values])
    axes.axhline(100, color=GOAL, linestyle="--", label="goal for p99: 100 ms")
    axes.set_xticks(places, names)
    axes.set_ylabel("late by (milliseconds)")
    axes.set_title("From the time that Sume asked for to the read's arrival")
    axes.margins(y=0.15)
    axes.legend(frameon=False, ncols=3, loc="upper left")


def _batch(axes: Any, found: Mapping[str, Any]) -> None:
    names = {"ours": "this app", "as asked": "least possible", "every 2 s": "every 2 s"}
    names["every 1 s"] = "every 1 s"
    reads = [found[name].reads for name in names]
    colors = [OURS if name == "ours" else THEIRS for name in names]
    bars = axes.bar(list(names.values()), reads, color=colors)
    labels = [
        f"{found[name].reads:.1f} reads\nnoticed after {found[name].notice:.1f} s" for name in names
    ]
    axes.bar_label(bars, labels)
    axes.set_ylabel("status reads for each render")
    axes.set_title("A batch on Pro limits: 4 processed, 20 queued")
    axes.margins(y=0.2)


def _claims(axes: Any, rates: Mapping[int, float]) -> None:
    names = [f"{limit} at a time" for limit in rates]
    bars = axes.barh(names, list(rates.values()), color=[THEIRS, OURS])
    axes.bar_label(bars, [f" {rate:,.0f}" for rate in rates.values()])
    axes.set_xlabel("renders claimed per second, four workers")
    axes.set_title("Claims from a full table")
    axes.margins(x=0.12)


PICTURES = {
    "throughput": _throughput,
    "slots": _slots,
    "punctuality": _punctuality,
    "batch": _batch,
    "claims": _claims,
}
