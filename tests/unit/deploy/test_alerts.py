"""When an alert fires, and when not, as promtool works it out (`apt install prometheus`)."""

import shutil
import subprocess
from typing import Any

import pytest
import yaml

from tests.unit.deploy import queries

PROMTOOL = shutil.which("promtool")
pytestmark = pytest.mark.skipif(not PROMTOOL, reason="promtool is not installed.")

OPEN = {'renders_gate_open{workspace="a",sort="writes",code=""}': "1x60"}
OPEN_READS = {'renders_gate_open{workspace="a",sort="reads",code=""}': "1x60"}
# Sends nothing while one waits.
STUCK = {
    'renders_jobs{workspace="a",state="pending",kind="image"}': "3x60",
    'renders_submits_total{workspace="a",outcome="accepted"}': "7x60",
}
SLOW = 'renders_request_duration_seconds_bucket{request="status",le="%s"}'

# Alert: what makes it fire within the hour; and what does not. Values are for each minute.
CASES: dict[str, tuple[dict[str, str], list[dict[str, str]]]] = {
    "RendersDown": ({'up{job="renders"}': "0x60"}, [{'up{job="renders"}': "1x60"}]),
    "RendersCountsAway": ({"renders_counts_up": "0x60"}, [{"renders_counts_up": "1 0 1x58"}]),
    "RendersGateClosed": (
        {'renders_gate_open{workspace="a",sort="writes",code="insufficient_credits"}': "0x60"},
        [
            OPEN,
            {
                'renders_gate_open{workspace="a",sort="writes",code=""}': "1x49 _x2 1x8",
                'renders_gate_open{workspace="a",sort="writes",code="queue_full"}': "_x49 0x2",
            },
            {'renders_gate_open{workspace="a",sort="writes",code="held"}': "0x60"},
            {'renders_gate_open{workspace="a",sort="writes",code="budget_spent"}': "0x60"},
        ],
    ),
    "RendersHeld": (
        {'renders_gate_open{workspace="a",sort="writes",code="held"}': "0x300"},
        [{'renders_gate_open{workspace="a",sort="writes",code="http_401"}': "0x300"}],
    ),
    "RendersBudgetSpent": (
        {'renders_gate_open{workspace="a",sort="writes",code="budget_spent"}': "0x60"},
        [{'renders_gate_open{workspace="a",sort="writes",code="http_401"}': "0x60"}],
    ),
    "RendersBudgetLow": (
        {
            'renders_spent_usd{workspace="a"}': "8x60",
            'renders_budget_usd{workspace="a"}': "10x60",
            'renders_gate_open{workspace="b",sort="writes",code="budget_spent"}': "0x60",
            **OPEN,
        },
        [
            {
                'renders_spent_usd{workspace="a"}': "7.9x60",
                'renders_budget_usd{workspace="a"}': "10x60",
                **OPEN,
            },
            {
                'renders_spent_usd{workspace="a"}': "10x60",
                'renders_budget_usd{workspace="a"}': "10x60",
                'renders_gate_open{workspace="a",sort="writes",code="budget_spent"}': "0x60",
            },
        ],
    ),
    "RendersNotSent": (
        STUCK | OPEN,
        [
            STUCK | {'renders_gate_open{workspace="b",sort="writes",code=""}': "1x60"},
            STUCK,  # the gate is closed
            OPEN | {k.replace("pending", "over_budget"): v for k, v in STUCK.items()},
            STUCK | OPEN | {'renders_submits_total{workspace="a",outcome="accepted"}': "0+1x60"},
            STUCK
            | OPEN
            | {
                'renders_in_flight{workspace="a"}': "24x60",
                'renders_in_flight_limit{workspace="a"}': "24x60",
            },
            STUCK | OPEN | {'renders_sume_queue_capacity{workspace="a"}': "0x60"},
        ],
    ),
    "RendersReadsLate": (
        {'renders_oldest_due_read_seconds{workspace="a"}': "300x60", **OPEN_READS},
        [
            {'renders_oldest_due_read_seconds{workspace="a"}': "60x60", **OPEN_READS},
            {
                'renders_oldest_due_read_seconds{workspace="a"}': "300x60",
                'renders_gate_open{workspace="a",sort="reads",code="http_401"}': "0x60",
            },
        ],
    ),
    "RendersSweepMissing": (
        {"renders_sweeps_total": "9x60"},
        [{"renders_sweeps_total": "0+2x60"}],
    ),
    "RendersUnhandled": (
        {"renders_oldest_unhandled_seconds": "1000x60"},
        [{"renders_oldest_unhandled_seconds": "100x60"}],
    ),
    "RendersReceiverFails": (
        {'renders_finish_failures_total{reason="receiver"}': "0x50 0+1x10"},
        [{'renders_finish_failures_total{reason="sume"}': "0x50 0+1x10"}],
    ),
    "RendersOverdue": ({"renders_jobs_overdue": "1x60"}, [{"renders_jobs_overdue": "0x60"}]),
    "RendersReadsFail": (
        {"renders_jobs_failing_reads": "2x60"},
        [{"renders_jobs_failing_reads": "0x50 2x5 0x5"}],
    ),
    "RendersFail": (
        {
            'renders_ended_total{status="failed",kind="image"}': "0+3x60",
            'renders_ended_total{status="completed",kind="image"}': "0+1x60",
        },
        [
            {
                'renders_ended_total{status="failed",kind="image"}': "0+1x60",
                'renders_ended_total{status="completed",kind="image"}': "0+3x60",
            },
            {'renders_ended_total{status="failed",kind="image"}': "0x50 1x10"},
        ],
    ),
    "RendersOutcomeUnknown": (
        {'renders_submits_total{workspace="a",outcome="unknown"}': "0+1x60"},
        [{'renders_submits_total{workspace="a",outcome="accepted"}': "0+1x60"}],
    ),
    "RendersSumeSlow": (
        {SLOW % "5.0": "0x60", SLOW % "10.0": "0+10x60", SLOW % "+Inf": "0+10x60"},
        [{SLOW % "5.0": "0+10x60", SLOW % "10.0": "0+10x60", SLOW % "+Inf": "0+10x60"}],
    ),
    "RendersMediaWaiting": (
        {'renders_media_waiting{workspace="a"}': "0x50 1x10"},
        [
            {'renders_media_waiting{workspace="a"}': "0x60"},
            {'renders_media_waiting{workspace="a"}': "0x50 1x1 0x9"},
        ],
    ),
    "RendersMediaLost": (
        {'renders_media_total{outcome="lost"}': "0x50 1x10"},
        [{'renders_media_total{outcome="given_up"}': "0x50 1x10"}],
    ),
    "RendersWebhooksRefused": (
        {'renders_webhooks_total{outcome="refused"}': "0x50 0+1x10"},
        [{'renders_webhooks_total{outcome="taken"}': "0x50 0+1x10"}],
    ),
    "RendersRepairs": (
        {'renders_repairs_total{repair="poll"}': "0+5x60"},
        [{'renders_repairs_total{repair="submit"}': "0+5x60"}],
    ),
    "RendersCost": (
        {'renders_cost_usd_total{kind="video"}': "0+2x60"},
        [{'renders_cost_usd_total{kind="video"}': "0+0.5x60"}],
    ),
}


def test_every_alert_has_its_cases():
    assert list(CASES) == [rule["alert"] for rule in queries.alerts()]


def test_alerts_fire_when_they_should_and_not_else(tmp_path):
    tests = []
    for name, (fires, quiet) in CASES.items():
        minutes = 300 if name == "RendersHeld" else 60
        for series, expected in [(fires, 1), *((series, 0) for series in quiet)]:
            firing = f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) or vector(0)'
            tests.append(
                {
                    "interval": "1m",
                    "name": f"{name} {expected}",
                    "input_series": [
                        {"series": one, "values": values} for one, values in series.items()
                    ],
                    "promql_expr_test": [
                        {
                            "expr": firing,
                            "eval_time": f"{minutes}m",
                            "exp_samples": [{"labels": "{}", "value": expected}],
                        }
                    ],
                }
            )
    told: dict[str, Any] = {"rule_files": [str(queries.ALERTS)], "tests": tests}
    path = tmp_path / "alerts.yml"
    path.write_text(yaml.safe_dump(told, sort_keys=False))

    found = subprocess.run(
        [str(PROMTOOL), "test", "rules", str(path)], capture_output=True, text=True
    )

    assert found.returncode == 0, found.stdout + found.stderr


def test_promtool_finds_no_fault_with_the_rules_and_the_example(tmp_path):
    (tmp_path / "alerts.yml").write_text(queries.ALERTS.read_text())
    (tmp_path / "renders.token").write_text("token")
    example = tmp_path / "prometheus.yml"
    example.write_text(
        queries.SCRAPE.read_text().replace("/etc/prometheus/renders.token", "renders.token")
    )

    found = subprocess.run(
        [str(PROMTOOL), "check", "config", str(example)], capture_output=True, text=True
    )

    assert found.returncode == 0, found.stdout + found.stderr
    assert f"{len(CASES)} rules found" in found.stdout
