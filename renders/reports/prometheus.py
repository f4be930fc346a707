"""All figures in Prometheus's words: how it stands now, and the counts of all processes."""

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

# Of each workspace: None where there is no such limit, or nobody knows.
FIGURES: tuple[tuple[str, str, Callable[[Figures], float | None]], ...] = (
    ("jobs_overdue", "Jobs that Sume should have ended long ago.", lambda told: told.overdue),
    ("in_flight", "Renders that have a place at Sume.", lambda told: told.in_flight),
    ("in_flight_limit", "Most that may have one.", lambda told: told.max_in_flight),
    ("writes_last_minute", "POSTs to Sume in the last 60 seconds.", lambda told: told.writes),
    ("writes_limit", "Most that may be.", lambda told: told.writes_per_minute),
    (
        "sume_queue_capacity",
        "Places left in Sume's queue, as last told.",
        lambda told: told.capacity,
    ),
    (
        "spent_usd",
        "What this month has cost, with what is under way, where there is a budget.",
        lambda told: None if told.spent is None else told.spent / MILLIONTHS,
    ),
    ("budget_usd", "The month's budget.", lambda told: told.budget / MILLIONTHS or None),
)


def text(
    standing: Standing, totals: Mapping[str, int] | None, accept: str = ""
) -> tuple[bytes, str]:
    """The page for a scraper that accepts this, and its content type.

    Without totals (their store is away) the counts are left out, so that none seems to fall.
    """
    registry = CollectorRegistry()
    registry.register(_Figures([*gauges(standing, totals is not None), *counts(totals)]))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Figures(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def gauges(standing: Standing, store: bool) -> Iterator[Metric]:
    """What is so just now."""
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
        ages = {one: standing.ages.get((one, state), 0.0) for one in standing.accounts}
        yield _of_each(name, words, ages)
    failing = {one: standing.failing_reads.get(one, 0) for one in standing.accounts}
    yield _of_each("jobs_failing_reads", "Jobs of which several reads in a row failed.", failing)
    waiting = {one: standing.media_waiting.get(one, 0) for one in standing.accounts}
    words = "Completed renders whose pictures or clips wait for a late try to store them."
    yield _of_each("media_waiting", words, waiting)
    yield from _gates(standing)
    for name, words, take in FIGURES:
        told = {one: take(figures) for one, (_, figures) in standing.accounts.items()}
        yield _of_each(name, words, told)


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


def counts(totals: Mapping[str, int] | None) -> Iterator[Metric]:
    """What has happened since the store was empty; what never happened, is 0."""
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


def _cells(name: str, meter: Meter, totals: Mapping[str, int]) -> list[list[str]]:
    """All that are expected, and those with `other` that are there."""
    cells = [list(values) for values in meter.cells()]
    for key in totals:
        own, *values = key.split("|")
        if own == name and OTHER in values:
            values = values[: len(meter.known())]
            if values not in cells:
                cells.append(values)
    return cells


def _of_each(name: str, words: str, values: Mapping[str, float | None]) -> Metric:
    """A gauge of one value for each workspace that has one."""
    family = _family(name, words, ["workspace"])
    for workspace, value in values.items():
        if value is not None:
            family.add_metric([workspace], value)
    return family


def gauge(name: str, words: str, value: float = 1, **labels: str) -> Metric:
    """A gauge of one value."""
    family = _family(name, words, list(labels))
    family.add_metric(list(labels.values()), value)
    return family


def _family(name: str, words: str, labels: Values = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"renders_{name}", words, labels=list(labels))
