import stat
from pathlib import Path

import dj_database_url
import pytest

from renders.demo.environment import (
    child_environment,
    redis_environment,
    sandbox_environment,
    why_unreachable,
)
from renders.demo.exceptions import DemoError
from renders.demo.state import StateFolder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "demo"


def opened(path: Path, *, keep: bool = False) -> StateFolder:
    state = StateFolder(path, keep=keep)
    state.open()
    return state


def test_it_starts_empty_and_leaves_nothing(path: Path) -> None:
    path.mkdir(parents=True)
    (path / "left over").touch()
    state = opened(path)
    assert sorted(entry.name for entry in path.iterdir()) == ["logs", "media"]
    (state.media / "picture").touch()
    state.database.touch()
    state.close()
    assert not path.exists()


def test_with_keep_everything_stays(path: Path) -> None:
    state = opened(path, keep=True)
    (state.media / "picture").touch()
    state.close()
    again = opened(path, keep=True)
    assert (again.media / "picture").exists()
    again.close()


def test_after_a_failure_only_the_logs_stay(path: Path) -> None:
    state = opened(path)
    (state.logs / "worker.log").touch()
    (state.media / "picture").touch()
    state.close(failed=True)
    assert [entry.name for entry in path.iterdir()] == ["logs"]


def test_two_demos_do_not_share_a_folder(path: Path) -> None:
    first = opened(path)
    with pytest.raises(DemoError, match="Another demo runs in"):
        StateFolder(path, keep=False).open()
    assert first.logs.is_dir()
    first.close()
    opened(path).close()


def test_secrets_are_kept_for_their_owner_only(path: Path) -> None:
    state = opened(path, keep=True)
    assert state.recall("word") == ""
    state.remember("word", "sesame")
    assert state.recall("word") == "sesame"
    (file,) = path.glob("word*")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    state.close()


def test_without_keep_no_secret_is_written(path: Path) -> None:
    state = opened(path)
    state.remember("word", "sesame")
    assert not list(path.glob("word*"))
    state.close()


def test_the_secret_key_lives_as_long_as_the_sessions_it_signs(path: Path) -> None:
    state = opened(path, keep=True)
    keys = {child_environment({}, state, "project.settings")["DJANGO_SECRET_KEY"] for _ in "ab"}
    assert len(keys) == 1
    assert len(keys.pop()) > 50
    state.close()


def test_what_the_user_set_is_respected(tmp_path: Path) -> None:
    own = {
        "DATABASE_URL": "postgresql://db",
        "DJANGO_SECRET_KEY": "mine",
        "RENDERS_SWEEP_SECONDS": "9",
        "DJANGO_ALLOWED_HOSTS": "example.com",
    }
    environment = child_environment(own, StateFolder(tmp_path, keep=False), "project.settings")
    assert {name: environment[name] for name in own} == {
        **own,
        "DJANGO_ALLOWED_HOSTS": "example.com,127.0.0.1,localhost",
    }


def test_a_public_name_is_no_fault_of_the_demo_and_a_file_is_not_read_again(tmp_path: Path) -> None:
    state = StateFolder(tmp_path, keep=False)
    for own, silenced in (("", ""), ("security.W004", "security.W004,")):
        given = {"DJANGO_SILENCED_SYSTEM_CHECKS": own, "DJANGO_ENV_FILE": "/etc/renders.env"}
        environment = child_environment(given, state, "project.settings")
        found = environment["DJANGO_SILENCED_SYSTEM_CHECKS"]
        assert found == f"{silenced}renders.E030,renders.W031,renders.W068"
        assert environment["DJANGO_ENV_FILE"] == ""


def test_a_path_with_odd_characters_survives_the_database_url(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "a b%20c#d?e", keep=False)
    url = child_environment({}, state, "project.settings")["DATABASE_URL"]
    assert dj_database_url.parse(url)["NAME"] == str(state.database)


def test_the_sandbox_takes_the_place_of_sume() -> None:
    own = {"SUME_BASE_URL": "x", "no_proxy": "intra", "SUME_WEBHOOK_SECRET": "of the real one"}
    environment = sandbox_environment(own, 1234, "key")
    assert environment["SUME_WEBHOOK_SECRET"] == ""
    assert environment["RENDERS_SECRETS_FILE"] == environment["RENDERS_WORKSPACES"] == ""
    assert environment["SUME_BASE_URL"] == "http://127.0.0.1:1234"
    assert environment["SUME_API_KEY"] == "key"
    assert environment["no_proxy"] == environment["NO_PROXY"] == "intra,127.0.0.1"
    assert environment["RENDERS_DEFAULT_POLL_SECONDS"] == "2"
    assert "RENDERS_DEFAULT_POLL_SECONDS" not in sandbox_environment(
        {"RENDERS_DEFAULT_POLL_SECONDS": "1"}, 1234, "key"
    )


def test_the_embedded_redis_is_the_broker_whatever_the_user_set() -> None:
    url = "redis://127.0.0.1:1/0"
    assert redis_environment(url) == {"REDIS_URL": url, "CELERY_BROKER_URL": url}


@pytest.mark.parametrize("url", ["nonsense", "redis://:s3cret@127.0.0.1:9/0"])
def test_why_redis_cannot_be_used_is_told_without_its_address(url: str) -> None:
    why = why_unreachable(url)
    assert why
    assert "s3cret" not in why
    assert "127" not in why
