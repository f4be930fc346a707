"""What the files in deploy/ say, as data."""

import json
import re
import shlex
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
DEPLOY = ROOT / "deploy"
UNITS = DEPLOY / "systemd"
ALL_UNITS = {path.name for path in UNITS.iterdir() if path.is_file()}
QUEUES = sorted(queue.name for queue in settings.CELERY_TASK_QUEUES)


def compose(**environment: str) -> dict[str, Any]:
    """compose.yaml, its variables put in: those given, else their defaults."""
    text = (DEPLOY / "compose.yaml").read_text()
    parts = re.split(r"(\$\$)", text)
    parts = [
        "$" if part == "$$" else re.sub(r"\$\{(\w+):-([^}]*)\}", _value(environment), part)
        for part in parts
    ]
    return yaml.safe_load("".join(parts))


def _value(environment: dict[str, str]) -> Any:
    return lambda found: environment.get(found[1]) or found[2]


def services(*profiles: str) -> dict[str, Any]:
    """The services that `COMPOSE_PROFILES` starts."""
    return {
        name: service
        for name, service in compose()["services"].items()
        if not service.get("profiles") or set(service["profiles"]) & set(profiles)
    }


def procfile() -> dict[str, str]:
    """Name to command line, variables at their defaults."""
    lines = (DEPLOY / "Procfile").read_text().splitlines()
    pairs = [line.split(": ", 1) for line in lines if line]
    return {name: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", command) for name, command in pairs}


def unit(name: str) -> RawConfigParser:
    """One unit of systemd with what stands in common.conf; the last of each option."""
    parser = RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNITS / name)
    if name.endswith(".service"):
        parser.read(UNITS / "renders-.service.d" / "common.conf")
    return parser


def unit_command(name: str) -> list[str]:
    """What a service of systemd runs, variables at their defaults."""
    text = (UNITS / f"renders-{name}.service").read_text()
    defaults = dict(re.findall(r"^Environment=(\w+)=(\S+)$", text, re.MULTILINE))
    command = unit(f"renders-{name}.service")["Service"]["ExecStart"].replace("%%", "%")
    defaults["DJANGO_STATE_DIR"] = "/var/lib/renders"
    return shlex.split(re.sub(r"\$\{(\w+)\}", lambda found: defaults[found[1]], command))


def queues_of(command: list[str]) -> list[str]:
    """The queues that a worker serves."""
    return command[command.index("-Q") + 1].split(",")


def dockerfile() -> list[tuple[str, str]]:
    """Instructions and their arguments, in order."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(line.split()[0], line.split(None, 1)[1]) for line in lines if line.strip()]


def as_list(argument: str) -> list[str]:
    """The JSON form of CMD, ENTRYPOINT, HEALTHCHECK."""
    return json.loads(argument[argument.index("[") :])
