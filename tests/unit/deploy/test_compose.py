"""deploy/compose.yaml: valid, complete, closed, and in step with the other files."""

import re

import pytest
import yaml
from compose_spec import PyCompose
from django.conf import settings

from tests.unit.deploy.support import (
    DEPLOY,
    QUEUES,
    ROOT,
    as_list,
    compose,
    dockerfile,
    queues_of,
    services,
    unit_command,
)

ALL = compose()["services"]
# Of our image.
OURS = sorted(name for name, service in ALL.items() if service["image"].startswith("renders:"))
WORKERS = ["submit", "poll", "media"]


def test_it_is_what_the_specification_allows():
    PyCompose.from_yaml(yaml.safe_dump(compose())).validate()


def test_the_check_finds_what_is_wrong():
    wrong = compose()
    wrong["services"]["web"]["healthcheck"]["intervall"] = "1s"

    with pytest.raises(ValueError):
        PyCompose.from_yaml(yaml.safe_dump(wrong)).validate()


@pytest.mark.parametrize(
    ("profiles", "scheduler"),
    [
        (["celery"], {"submit", "poll", "media", "beat", "redis"}),
        (["celery", "pollrenders"], {"submit", "poll", "media", "beat", "redis", "pollrenders"}),
        (["database"], {"runrenders"}),
    ],
)
def test_each_way_to_run_it_starts_what_it_needs(profiles, scheduler):
    assert set(services(*profiles)) == {"web", "migrate", "database"} | scheduler


def test_each_queue_is_served_by_one_worker():
    assert sorted(q for name in WORKERS for q in queues_of(ALL[name]["command"])) == QUEUES


@pytest.mark.parametrize("name", sorted(set(OURS) - {"flower", "beat"}))
def test_a_service_runs_what_systemd_runs(name):
    program, *arguments = unit_command(name)

    assert ALL[name]["command"] == [program.rpartition("/")[2], *arguments]


@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_may_end_what_it_has_begun(name):
    assert int(ALL[name]["stop_grace_period"][:-1]) > settings.CELERY_TASK_TIME_LIMIT


@pytest.mark.parametrize("name", OURS)
def test_our_services_wait_for_the_tables_and_may_not_much(name):
    service = ALL[name]
    waits = service["depends_on"]

    assert waits.keys() >= {"database"} if name == "migrate" else waits.keys() >= {"migrate"}
    assert all(
        condition["condition"] in {"service_healthy", "service_completed_successfully"}
        for condition in waits.values()
    )
    assert service["read_only"] and service["init"] and service["cap_drop"] == ["ALL"]


def test_only_the_site_is_open():
    ports = {name: service["ports"] for name, service in ALL.items() if "ports" in service}

    assert ports.pop("proxy") == ["80:80", "443:443", "443:443/udp"]
    assert ports == {"web": ["127.0.0.1:8000:8000"], "flower": ["127.0.0.1:5555:5555"]}
    assert {name for name, s in ALL.items() if s["networks"] == ["data"]} == {"database", "redis"}
    assert compose()["networks"]["data"] == {"internal": True}


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_service_has_a_health_check_or_says_why_not(name):
    check = ALL[name]["healthcheck"]

    assert check.get("test") or name in {"migrate", "pollrenders", "runrenders"}


@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_is_asked_by_the_name_it_has(name):
    node = ALL[name]["command"][ALL[name]["command"].index("-n") + 1]
    [_, line] = ALL[name]["healthcheck"]["test"]

    assert node.replace("%h", "$HOSTNAME") in line.split()


def test_secrets_are_files_and_go_to_those_who_need_them():
    told = {name: set(service.get("secrets", [])) for name, service in ALL.items()}

    assert set().union(*told.values()) == set(compose()["secrets"])
    assert {name for name in told if "SUME_API_KEY" in told[name]} == {
        "web",
        "submit",
        "poll",
        "media",
        "pollrenders",
        "runrenders",
    }
    assert {name for name in told if "FLOWER_BASIC_AUTH" in told[name]} == {"flower"}
    assert "secrets/" in (ROOT / ".gitignore").read_text()
    variables = set(compose()["secrets"])
    assert not variables & {name for s in ALL.values() for name in s.get("environment", {})}


def test_the_image_is_built_from_files_that_are_there():
    build = ALL["web"]["build"]

    assert (DEPLOY / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()
    assert (DEPLOY / "Caddyfile").is_file()
    entry = dict(dockerfile())["ENTRYPOINT"]
    asked = [word for s in ALL.values() for word in s["healthcheck"].get("test", [])]
    paths = {path for word in asked for path in re.findall(r"/app/\S+", word)}
    assert paths == set(as_list(entry))


def test_the_example_of_the_environment_names_what_is_read():
    lines = (DEPLOY / "example.env").read_text()
    named = set(re.findall(r"^#?(\w+)=", lines, re.MULTILINE))
    text = (DEPLOY / "compose.yaml").read_text()

    asked = set(re.findall(r"\$\{(\w+):-", text)) - {"RENDERS_VERSION"}
    assert asked <= named
    assert "COMPOSE_PROFILES" in named
