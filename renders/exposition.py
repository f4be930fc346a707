"""All figures in Prometheus's words: how it stands now, and the counts of all processes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from renders.conf import conf
from renders.counting import SUM, key_of
from renders.measuring import STATES, Standing
from renders.meters import COUNTERS, HISTOGRAMS, MILLIONTHS, OTHER, Meter
from renders.standing import GateStanding

Values = Sequence[str]


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

    jobs = _family("jobs", "Renders that are not done, by where they stand.", ["state", "kind"])
    for state in STATES:
        for kind in COUNTERS["ended"].labels["kind"]:
            jobs.add_metric([state, kind], standing.jobs.get((state, kind), 0))
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
        yield gauge(name, words, standing.ages[state])
    yield gauge("jobs_overdue", "Jobs that Sume should have ended long ago.", standing.overdue)
    yield gauge(
        "jobs_failing_reads", "Jobs of which several reads in a row failed.", standing.failing_reads
    )
    yield from _gates(standing)
    yield gauge("in_flight", "Renders that have a place at Sume.", standing.in_flight)
    if conf.max_in_flight is not None:
        yield gauge("in_flight_limit", "Most that may have one.", conf.max_in_flight)
    yield gauge("writes_last_minute", "POSTs to Sume in the last 60 seconds.", standing.writes)
    yield gauge("writes_limit", "Most that may be.", conf.writes_per_minute)
    if standing.capacity is not None:
        yield gauge(
            "sume_queue_capacity", "Places left in Sume's queue, as last told.", standing.capacity
        )


def _gates(standing: Standing) -> Iterator[Metric]:
    is_open = _family("gate_open", "0: none is sent now; the code says why.", ["sort", "code"])
    left = _family("gate_pause_seconds", "How long yet; infinite until a person resumes.", ["sort"])
    for gate in standing.gates:
        is_open.add_metric([gate.sort, gate.code if gate.closed else ""], int(not gate.closed))
        left.add_metric([gate.sort], _left(gate, standing))
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
        counter = CounterMetricFamily(f"renders_{name}", meter.help, labels=list(meter.labels))
        for values in _cells(name, meter, totals):
            counter.add_metric(values, totals.get(key_of(name, values), 0) / meter.scale)
        yield counter
    for name, meter in HISTOGRAMS.items():
        histogram = HistogramMetricFamily(f"renders_{name}", meter.help, labels=list(meter.labels))
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
            values = values[: len(meter.labels)]
            if values not in cells:
                cells.append(values)
    return cells


def gauge(name: str, words: str, value: float = 1, **labels: str) -> Metric:
    """A gauge of one value."""
    family = _family(name, words, list(labels))
    family.add_metric(list(labels.values()), value)
    return family


def _family(name: str, words: str, labels: Values = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"renders_{name}", words, labels=list(labels))
