"""All figures in Prometheus's format: the current state, and the counts of all processes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from renders.conf import conf
from renders.reports.figures import STATES, Standing
from renders.reports.standing import Figures, GateStanding
from renders.telemetry.metrics import (
    COUNTERS,
    HISTOGRAMS,
    KINDS,
    MILLIONTHS,
    OTHER,
    SUM,
    Meter,
    key_of,
)

Values = Sequence[str]

# For each workspace; None if there is no such limit, or the value is unknown.
FIGURES: tuple[tuple[str, str, Callable[[Figures], float | None]], ...] = (
    ("jobs_overdue", "Jobs that Sume should have ended long ago.", lambda now: now.overdue),
    ("in_flight", "Renders that have a place at Sume.", lambda now: now.in_flight),
    ("in_flight_limit", "Most that may have one.", lambda now: now.max_in_flight),
    ("writes_last_minute", "POSTs to Sume in the last 60 seconds.", lambda now: now.writes),
    ("writes_limit", "Most that may be.", lambda now: now.writes_per_minute),
    (
        "sume_queue_capacity",
        "Places left in Sume's queue, as last told.",
        lambda now: now.capacity,
    ),
    (
        "spent_usd",
        "What this month has cost, with what is under way, where there is a budget.",
        lambda now: None if now.spent is None else now.spent / MILLIONTHS,
    ),
    ("budget_usd", "The month's budget.", lambda now: now.budget / MILLIONTHS or None),
)


def text(
    standing: Standing, totals: Mapping[str, int] | None, accept: str = ""
) -> tuple[bytes, str]:
    """The metrics page in a format that the scraper accepts, and its content type.

    Without totals (their store is down) the counts are left out, so that no counter seems to drop.
    """
    registry = CollectorRegistry()
    registry.register(_Figures([*gauges(standing, totals is not None), *counts(totals)]))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


def gauges(standing: Standing, store: bool) -> Iterator[Metric]:
    """The current state, as gauges; `store` is whether the store of the counts answered."""
    info = gauge("info", "How this app is run.", scheduler=conf.SCHEDULER, plan=conf.PLAN)
    yield info
    yield gauge("up", "1: the database has answered.", 1)
    yield gauge("counts_up", "1: the store of the counts has answered.", int(store))

    words = "Renders that are not done, by where they stand."
    jobs = _family("jobs", words, ["workspace", "state", "kind"])
    for place in product(standing.accounts, STATES, KINDS):
        jobs.add_metric(place, standing.jobs.get(place, 0))
    yield jobs
    if standing.ended is not None:
        ended = _family("jobs_ended", "Renders that have ended, counted once a minute.", ["status"])
        for status, number in standing.ended.items():
            ended.add_metric([status], number)
        yield ended
    for name, state, words in (
        ("oldest_pending_seconds", "pending", "Age of the oldest that waits to be sent."),
        ("oldest_submitting_seconds", "submitting", "How long the longest POST is under way."),
        ("oldest_due_read_seconds", "submitted", "How late the read is that is due longest."),
        ("oldest_unhandled_seconds", "unhandled", "How long ago the oldest unhandled one ended."),
    ):
        ages = {key: standing.ages.get((key, state), 0.0) for key in standing.accounts}
        yield _of_each(name, words, ages)
    failing = {key: standing.failing_reads.get(key, 0) for key in standing.accounts}
    yield _of_each("jobs_failing_reads", "Jobs of which several reads in a row failed.", failing)
    waiting = {key: standing.media_waiting.get(key, 0) for key in standing.accounts}
    words = "Completed renders whose pictures or clips wait for a late try to store them."
    yield _of_each("media_waiting", words, waiting)
    yield from _gates(standing)
    for name, words, take in FIGURES:
        values = {key: take(figures) for key, (_, figures) in standing.accounts.items()}
        yield _of_each(name, words, values)


def counts(totals: Mapping[str, int] | None) -> Iterator[Metric]:
    """The counts since the store was last empty; 0 for events that never happened."""
    if totals is None:
        return
    for name, meter in COUNTERS.items():
        counter = CounterMetricFamily(f"renders_{name}", meter.help, labels=list(meter.known()))
        for values in _cells(name, meter, totals):
            counter.add_metric(values, totals.get(key_of(name, values), 0) / meter.scale)
        yield counter
    for name, meter in HISTOGRAMS.items():
        histogram = HistogramMetricFamily(f"renders_{name}", meter.help, labels=list(meter.known()))
        for values in _cells(name, meter, totals):
            buckets, under = [], 0
            for index, bound in enumerate([*map(float, meter.buckets), float("inf")]):
                under += totals.get(key_of(name, [*values, str(index)]), 0)
                buckets.append(("+Inf" if bound == float("inf") else str(bound), under))
            total = totals.get(key_of(name, [*values, SUM]), 0) / MILLIONTHS
            histogram.add_metric(values, buckets, total)
        yield histogram


def gauge(name: str, words: str, value: float = 1, **labels: str) -> Metric:
    """A gauge with one value."""
    family = _family(name, words, list(labels))
    family.add_metric(list(labels.values()), value)
    return family


class _Figures(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _gates(standing: Standing) -> Iterator[Metric]:
    labels = ["workspace", "sort"]
    is_open = _family("gate_open", "0: none is sent now; the code says why.", [*labels, "code"])
    left = _family("gate_pause_seconds", "How long yet; infinite until a person resumes.", labels)
    for name, (gates, _) in standing.accounts.items():
        for gate in gates:
            why = gate.code if gate.closed else ""
            is_open.add_metric([name, gate.sort, why], int(not gate.closed))
            left.add_metric([name, gate.sort], _left(gate, standing))
    yield is_open
    yield left


def _left(gate: GateStanding, standing: Standing) -> float:
    if not gate.closed:
        return 0.0
    return (gate.until - standing.at).total_seconds() if gate.until else float("inf")


def _cells(name: str, meter: Meter, totals: Mapping[str, int]) -> list[list[str]]:
    """All expected label values, and those with `other` that occur in the totals."""
    cells = [list(values) for values in meter.cells()]
    for key in totals:
        own, *values = key.split("|")
        if own == name and OTHER in values:
            values = values[: len(meter.known())]
            if values not in cells:
                cells.append(values)
    return cells


def _of_each(name: str, words: str, values: Mapping[str, float | None]) -> Metric:
    """A gauge with one value for each workspace that has one."""
    family = _family(name, words, ["workspace"])
    for workspace, value in values.items():
        if value is not None:
            family.add_metric([workspace], value)
    return family


def _family(name: str, words: str, labels: Values = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"renders_{name}", words, labels=list(labels))
