import io
import socket
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from renders.demo import embedded_redis


@pytest.fixture(autouse=True)
def state(settings: Any, tmp_path: Path) -> Path:
    settings.STATE_DIR = tmp_path
    return tmp_path / "demo"


def demo(*arguments: str) -> None:
    call_command("demo", *arguments, "--exit", stdout=io.StringIO())


def test_an_empty_prompt_is_told_before_anything_starts(state: Path) -> None:
    with pytest.raises(CommandError, match="A prompt is empty") as caught:
        demo("a red fox", " ")
    assert caught.value.returncode == 2
    assert not state.exists()


def test_a_port_in_use_is_told(state: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(CommandError, match=f"Port {port} is in use. Choose another"):
            demo("--port", str(port))
    assert not state.exists()


def test_no_redis_is_told(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(embedded_redis, "find_spec", lambda name: None)
    with pytest.raises(CommandError, match="No Redis server found") as caught:
        demo()
    assert caught.value.returncode == 1
    assert not state.exists()
