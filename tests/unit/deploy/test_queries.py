"""The dashboard and the alerts ask for what there is."""

import json
import re
from itertools import combinations

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from renders.reports import prometheus
from renders.reports.standing import GateStanding
from tests.unit.deploy import queries
from tests.unit.reports.test_prometheus import standing

QUERIES = [*queries.of_dashboard(), *queries.of_alerts()]


@pytest.fixture(scope="module")
def lines():
    """All that a page can show: name and labels."""
    gates = [
        GateStanding("writes", closed=True, held=True, code="held"),
        GateStanding("writes", closed=True, code="budget_spent"),
        GateStanding("reads"),
    ]
    limits = {"max_in_flight": 24, "capacity": 3, "spent": 1, "budget": 2}
    page, _ = prometheus.text(standing(gates=gates, ended={"completed": 1}, **limits), {})
    return [
        (sample.name, sample.labels)
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    ]


@pytest.mark.parametrize("query", sorted(set(QUERIES)))
def test_a_query_asks_for_what_a_page_shows(lines, query):
    asked = queries.selectors(query)

    assert asked or query == 'up{job="renders"} == 0'
    for name, wanted in asked:
        assert [labels for own, labels in lines if own == name and queries.matches(labels, wanted)]


@pytest.mark.parametrize("query", sorted(set(QUERIES)))
def test_a_query_groups_by_labels_that_there_are(lines, query):
    names = {name for name, _ in queries.selectors(query)}
    known = {label for own, labels in lines if own in names for label in labels}
    grouped = re.findall(r"by \(([^)]*)\)", query)

    assert {label.strip() for labels in grouped for label in labels.split(",")} <= known


def test_all_that_a_page_shows_is_on_the_dashboard(lines):
    asked = {name for query in queries.of_dashboard() for name, _ in queries.selectors(query)}
    shown = {re.sub(r"_(sum|count|created)$", "_bucket", name) for name, _ in lines}

    assert shown - asked == {"renders_info"}


def test_the_legends_name_labels_that_there_are(lines):
    for panel in queries.panels():
        for target in panel["targets"]:
            [(name, _), *_] = queries.selectors(target["expr"])
            known = {label for own, labels in lines if own == name for label in labels}
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= known


def test_the_panels_do_not_lie_on_each_other():
    board = json.loads(queries.DASHBOARD.read_text())
    places = [panel["gridPos"] for panel in board["panels"]]

    assert len({panel["id"] for panel in board["panels"]}) == len(places)
    for one, two in combinations(places, 2):
        assert (
            one["x"] + one["w"] <= two["x"]
            or two["x"] + two["w"] <= one["x"]
            or one["y"] + one["h"] <= two["y"]
            or two["y"] + two["h"] <= one["y"]
        )
    assert all(place["x"] + place["w"] <= 24 for place in places)


def test_the_panels_read_from_the_source_that_is_chosen():
    board = json.loads(queries.DASHBOARD.read_text())

    assert [variable["name"] for variable in board["templating"]["list"]] == ["datasource"]
    for panel in queries.panels():
        sources = {target["datasource"]["uid"] for target in panel["targets"]}
        assert sources | {panel["datasource"]["uid"]} == {"${datasource}"}


def test_each_alert_says_what_it_is_and_where_to_read_on():
    names = [rule["alert"] for rule in queries.alerts()]

    assert len(set(names)) == len(names)
    for rule in queries.alerts():
        told = rule["annotations"]
        assert told["summary"] and told["description"].endswith(".")
        assert told["runbook"] == f"docs/monitoring.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}


def test_the_example_scrapes_the_page_with_a_token_from_a_file():
    config = yaml.safe_load(queries.SCRAPE.read_text())
    [job] = config["scrape_configs"]

    assert job["job_name"] == "renders"
    assert job["metrics_path"] == "/metrics"
    assert job["authorization"]["type"] == "Bearer"
    assert "credentials" not in job["authorization"]
    assert config["rule_files"] == [queries.ALERTS.name]
