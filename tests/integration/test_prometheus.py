"""A real Prometheus reads the page of a real run (`apt install prometheus`)."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from renders.demo.processes import Child, free_port, kill_group
from tests.integration import modes
from tests.integration.stack import Stack
from tests.unit.deploy import queries
from tests.unit.docs.test_monitoring import blocks

PROMETHEUS = shutil.which("prometheus")
TOKEN = "scraper-of-the-tests"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROMETHEUS, reason="prometheus is not installed."),
]


class Prometheus:
    """The server with this repository's rules and its example of a configuration."""

    def __init__(self, folder: Path, target: str) -> None:
        self.site = f"http://{target}"
        self.url = f"http://127.0.0.1:{free_port()}"
        config = yaml.safe_load(queries.SCRAPE.read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["global"]["scrape_timeout"] = "1s"
        [job] = config["scrape_configs"]
        job["scheme"] = "http"
        job["static_configs"] = [{"targets": [target]}]
        job["authorization"]["credentials_file"] = str(folder / "renders.token")
        (folder / "renders.token").write_text(TOKEN + "\n")
        (folder / "alerts.yml").write_text(queries.ALERTS.read_text())
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self.child = Child(
            "prometheus",
            [
                str(PROMETHEUS),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self.url.removeprefix('http://')}",
            ],
            environment={},
            log=folder / "prometheus.log",
            cwd=folder,
        )

    def ask(self, path: str, **words: str) -> Any:
        """What its HTTP API answers; None while it does not."""
        try:
            with urlopen(f"{self.url}/api/v1/{path}?{urlencode(words)}", timeout=5) as reply:  # noqa: S310
                return json.load(reply)["data"]
        except HTTPError as error:
            assert error.code == 503, f"{words}: {error.read()!r}"  # else it starts
        except URLError:
            pass
        return None

    def query(self, text: str) -> list[Any]:
        """The series that a query finds."""
        found = self.ask("query", query=text)
        return found["result"] if found else []


@pytest.fixture
def prometheus(stack: Stack, tmp_path: Path) -> Iterator[Prometheus]:
    modes.use(stack, "countdown")
    port = free_port()
    stack.environment |= {"RENDERS_METRICS_TOKEN": TOKEN, "RENDERS_PLAN": "pro"}
    stack.environment |= {"RENDERS_BUDGET_USD": "100", "RENDERS_PRICES": "image:sume/auto=0.09"}
    web = stack.run("web", "manage.py", "runserver", "--noreload", f"127.0.0.1:{port}")
    stack.until(lambda: web.has_written("Quit the server"), child=web)
    folder = tmp_path / "prometheus"
    folder.mkdir()
    server = Prometheus(folder, f"127.0.0.1:{port}")
    yield server
    kill_group(server.child)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_every_query_finds_what_a_run_has_left(stack: Stack, prometheus: Prometheus) -> None:
    stack.until(lambda: prometheus.query("renders_up == 1"), child=prometheus.child)
    look = subprocess.run(
        ["bash", "-c", blocks("sh")[1]],
        env={**os.environ, "RENDERS_METRICS_TOKEN": TOKEN, "SITE": prometheus.site},
        capture_output=True,
        text=True,
    )
    assert "\nrenders_up 1.0\n" in look.stdout, look.stderr
    stack.worker()
    stack.create("a red fox", "FAIL on purpose", "REJECT this")
    stack.until_handled()
    stack.until(lambda: prometheus.query('renders_ended_total{status="failed"} == 2'))
    time.sleep(1.5)  # rates need two lines after the last change

    empty = [text for text in queries.of_dashboard() if not prometheus.query(text)]
    assert empty == []
    for text in queries.of_alerts():
        prometheus.query(text)  # an error would be raised
        for name, wanted in queries.selectors(text):
            if not {("code", "=", "held"), ("code", "=", "budget_spent")} & set(wanted):
                braced = ",".join(f'{label}{how}"{word}"' for label, how, word in wanted)
                assert prometheus.query(f"{name}{{{braced}}}"), (name, wanted)
    assert prometheus.query('up{job="renders"} == 1')

    [group] = prometheus.ask("rules")["groups"]
    assert len(group["rules"]) == len(queries.alerts())
    assert {rule["health"] for rule in group["rules"]} == {"ok"}
    # Nobody made a sweep but the test; what else is well, does not alarm.
    assert {alert["labels"]["alertname"] for alert in prometheus.ask("alerts")["alerts"]} <= {
        "RendersSweepMissing"
    }
    assert float(prometheus.query("sum(increase(renders_cost_usd_total[1m]))")[0]["value"][1]) > 0
