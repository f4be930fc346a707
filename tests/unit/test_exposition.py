"""The counts in Prometheus's words."""

from prometheus_client.parser import text_string_to_metric_families

from renders import exposition
from renders.measuring import Standing
from renders.standing import GateStanding


def standing(**changed):
    nothing = {
        "jobs": {},
        "ages": dict.fromkeys(("pending", "submitting", "submitted", "unhandled"), 0.0),
        "ended": None,
        "gates": [GateStanding("writes"), GateStanding("reads")],
        "overdue": 0,
        "failing_reads": 0,
        "writes": 0,
        "capacity": None,
    }
    return Standing(**{**nothing, **changed})


def samples(totals, **changed):
    """Each line of the page: name, the labels' values by the labels' names, and value."""
    page, _ = exposition.text(standing(**changed), totals)
    return {
        (sample.name, *(word for _, word in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def test_what_never_happened_is_zero():
    found = samples({})

    assert found["renders_submits_total", "accepted"] == 0
    assert found["renders_ended_total", "video", "failed"] == 0
    assert found["renders_poll_lateness_seconds_count",] == 0
    assert found["renders_stage_duration_seconds_bucket", "60.0", "at_sume"] == 0


def test_buckets_hold_all_that_are_below():
    found = samples(
        {
            "poll_lateness_seconds|0": 2,
            "poll_lateness_seconds|2": 1,
            "poll_lateness_seconds|10": 1,
            "poll_lateness_seconds|sum": 1_500_000,
        }
    )

    lateness = "renders_poll_lateness_seconds"
    assert found[f"{lateness}_bucket", "0.05"] == 2
    assert found[f"{lateness}_bucket", "0.1"] == 2
    assert found[f"{lateness}_bucket", "0.25"] == 3
    assert found[f"{lateness}_bucket", "300.0"] == 3
    assert found[f"{lateness}_bucket", "+Inf"] == found[f"{lateness}_count",] == 4
    assert found[f"{lateness}_sum",] == 1.5


def test_cost_is_in_dollars():
    assert samples({"cost_usd|image": 90_000})["renders_cost_usd_total", "image"] == 0.09


def test_what_nobody_expected_is_shown_once_it_happened():
    assert ("renders_submits_total", "other") not in samples({})
    assert samples({"submits|other": 3})["renders_submits_total", "other"] == 3


def test_a_count_of_a_release_to_come_is_left_alone():
    assert samples({"unheard_of|x": 3, "submits|accepted": 1})["renders_submits_total", "accepted"]


def test_a_closed_gate_says_why():
    gates = [
        GateStanding("writes", closed=True, code="insufficient_credits"),
        GateStanding("reads", code="http_401", trying=True),
    ]
    found = samples({}, gates=gates)

    assert found["renders_gate_open", "insufficient_credits", "writes"] == 0
    assert found["renders_gate_open", "", "reads"] == 1
    assert found["renders_gate_pause_seconds", "writes"] == float("inf")
    assert found["renders_gate_pause_seconds", "reads"] == 0


def test_a_limit_that_there_is_not_is_not_shown(settings):
    assert ("renders_in_flight_limit",) not in samples({})
    settings.RENDERS = {**settings.RENDERS, "PLAN": "pro"}
    assert samples({})["renders_in_flight_limit",] == 24
