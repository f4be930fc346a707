"""What the dashboard and the alerts ask, and of what."""

import json
import re
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
ALERTS = ROOT / "deploy/prometheus/alerts.yml"
SCRAPE = ROOT / "deploy/prometheus/prometheus.yml"
DASHBOARD = ROOT / "deploy/grafana/renders.json"
SELECTOR = re.compile(r"(renders_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~|!=|=)"([^"]*)"')


def alerts() -> list[dict[str, Any]]:
    """The rules, as Prometheus reads them."""
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    return group["rules"]


def panels() -> list[dict[str, Any]]:
    """The panels of the dashboard, its rows apart."""
    found = json.loads(DASHBOARD.read_text())["panels"]
    return [panel for panel in found if panel["type"] != "row"]


def of_dashboard() -> list[str]:
    """Every query of the dashboard, with a span for Grafana's own."""
    texts = [target["expr"] for panel in panels() for target in panel["targets"]]
    return [text.replace("$__rate_interval", "1m") for text in texts]


def of_alerts() -> list[str]:
    """The condition of each alert."""
    return [rule["expr"] for rule in alerts()]


def selectors(query: str) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """What a query reads: names, and for each the label, how it is compared, and with what."""
    return [(name, MATCHER.findall(labels or "")) for name, labels in SELECTOR.findall(query)]


def matches(labels: dict[str, str], wanted: list[tuple[str, str, str]]) -> bool:
    """Whether a line of the page is among what is read."""
    for name, how, word in wanted:
        value = labels.get(name, "")
        same = re.fullmatch(word, value) is not None if how == "=~" else value == word
        if same == (how == "!="):
            return False
    return True
