"""The counts in Prometheus's words."""

from prometheus_client.parser import text_string_to_metric_families

from renders.reports import prometheus
from renders.reports.figures import Standing
from renders.reports.standing import Figures, GateStanding

OPEN = [GateStanding("writes"), GateStanding("reads")]


def standing(gates=OPEN, ended=None, **figures):
    nothing = dict.fromkeys(Figures.__dataclass_fields__, 0)
    nothing |= {"max_in_flight": None, "capacity": None, "spent": None}
    accounts = {"default": (gates, Figures(**{**nothing, **figures}))}
    return Standing({}, {}, {}, ended=ended, accounts=accounts)


def samples(totals, **changed):
    """Each line of the page: name, the labels' values by the labels' names, and value."""
    page, _ = prometheus.text(standing(**changed), totals)
    return {
        (sample.name, *(word for _, word in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def test_what_never_happened_is_zero():
    found = samples({})

    assert found["renders_submits_total", "accepted", "default"] == 0
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
    found = samples({"cost_usd|default|image": 90_000})

    assert found["renders_cost_usd_total", "image", "default"] == 0.09


def test_what_nobody_expected_is_shown_once_it_happened():
    unexpected = ("renders_submits_total", "other", "default")
    assert unexpected not in samples({})
    assert samples({"submits|default|other": 3})[unexpected] == 3


def test_a_count_of_a_release_to_come_is_left_alone():
    found = samples({"unheard_of|x": 3, "submits|default|accepted": 1})
    assert found["renders_submits_total", "accepted", "default"]


def test_a_closed_gate_says_why():
    gates = [
        GateStanding("writes", closed=True, code="insufficient_credits"),
        GateStanding("reads", code="http_401", trying=True),
    ]
    found = samples({}, gates=gates)

    assert found["renders_gate_open", "insufficient_credits", "writes", "default"] == 0
    assert found["renders_gate_open", "", "reads", "default"] == 1
    assert found["renders_gate_pause_seconds", "writes", "default"] == float("inf")
    assert found["renders_gate_pause_seconds", "reads", "default"] == 0


def test_a_limit_that_there_is_not_is_not_shown():
    limits = ("renders_in_flight_limit", "renders_spent_usd", "renders_budget_usd")
    none = samples({})
    some = samples({}, max_in_flight=24, spent=1_500_000, budget=2_000_000)

    assert [(limit, "default") in none for limit in limits] == [False] * 3
    assert [some[limit, "default"] for limit in limits] == [24, 1.5, 2]


def test_each_workspace_has_its_own_lines(settings):
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": {"API_KEY": "k"}}}
    found = samples({"cost_usd|acme|image": 1_000_000, "cost_usd|default|image": 2_000_000})

    assert found["renders_cost_usd_total", "image", "acme"] == 1
    assert found["renders_cost_usd_total", "image", "default"] == 2
