"""The app in a project that is not ours: its own user, Celery app, broker, pages, time zone."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dj_database_url
import pytest

from renders.demo.embedded_redis import EmbeddedRedis
from renders.sandbox import Sandbox
from tests.integration.conftest import Databases
from tests.integration.studio import KEY, PASSWORD, Studio, Visitor

pytestmark = pytest.mark.slow

ROOT_ADDRESS = "root@example.com"
SHORT_TIMES = {
    "REQUEST_TIMEOUT_SECONDS": 5,
    "DEFAULT_POLL_SECONDS": 0.5,
    "MIN_POLL_SECONDS": 0.2,
    "MEDIA_PRIVATE_HOSTS": "127.0.0.1",
}


@pytest.fixture
def broker(request: pytest.FixtureRequest, redis: EmbeddedRedis) -> str:
    """RabbitMQ where it is installed, else Redis."""
    try:
        node = request.getfixturevalue("rabbitmq_of_session")
    except pytest.skip.Exception:
        return redis.url
    if not node.alive:
        node.start()
    return str(node.url)


@pytest.fixture(params=["sqlite", "postgresql"])
def studio(
    request: pytest.FixtureRequest,
    databases: Databases,
    redis: EmbeddedRedis,
    broker: str,
    sandbox: Sandbox,
    tmp_path: Path,
) -> Iterator[Studio]:
    """The other project, with an empty database."""
    url = databases.empty(request.param)
    database: dict[str, Any] = dict(dj_database_url.parse(url))
    if request.param == "sqlite":
        database["OPTIONS"] = {"transaction_mode": "IMMEDIATE", "timeout": 20}
    studio = Studio(
        tmp_path,
        STUDIO_DATABASE=database,
        STUDIO_BROKER=broker,
        REDIS_URL=redis.url,
        STUDIO_RENDERS=SHORT_TIMES | {"BASE_URL": sandbox.url},
    )
    yield studio
    studio.stop()
    databases.drop(url)


def test_its_own_tests_pass(studio: Studio) -> None:
    assert "OK" in studio.manage("test", "--noinput")


def test_renders_of_every_way_come_to_their_end(
    studio: Studio, redis: EmbeddedRedis, broker: str, sandbox: Sandbox
) -> None:
    studio.manage("migrate")
    studio.manage(
        "createsuperuser",
        "--noinput",
        "--email",
        ROOT_ADDRESS,
        DJANGO_SUPERUSER_PASSWORD=PASSWORD,
    )
    studio.worker()
    studio.web()
    root = Visitor(studio.port)
    inside = root.send("/enter/?next=/studio/renders/", username=ROOT_ADDRESS, password=PASSWORD)
    assert inside.url.endswith("/studio/renders/")

    root.send("/studio/renders/new/", prompt="From the page", kind="image")
    fields = {"kind": "image", "model": "sume/auto", "priority": "0", "params": "{}"}
    root.send("/desk/renders/renderjob/add/", prompt="From the admin", **fields)
    token = api_token(root)
    made = root.post_json("/studio/api/renders/", {"prompt": "From the API"}, Authorization=token)
    studio.manage("render", "From the command", "--user", ROOT_ADDRESS, "--no-follow")

    def told() -> list[dict[str, Any]]:
        answer: Any = root.get("/studio/api/renders/?status=completed", Authorization=token).json()
        return [render for render in answer["renders"] if render["artifacts"]]

    studio.until(lambda: len(told()) == 4)
    assert {render["prompt"].removeprefix("From the ") for render in told()} == {
        "page",
        "admin",
        "API",
        "command",
    }
    assert len({bill.idempotency_key for bill in sandbox.ledger.bills}) == 4
    assert len(sandbox.ledger.bills) == 4
    assert "It is ready" in root.get(made["html_url"]).text
    assert root.get(told()[0]["artifacts"][0]["url"]).content.startswith(b"\x89PNG")
    assert "From the command" in root.get("/studio/renders/").text
    assert "From the command" in root.get("/desk/renders/renderjob/").text
    assert root.get("/assets/renders/renders.css").content
    assert root.get("/studio/healthz").ok
    assert "Traceback" not in studio.logs() and KEY not in studio.logs()
    if broker.startswith("amqp"):
        keys = [key for key in redis_keys(redis) if not key.startswith(("sume:", "renders:"))]
        assert keys == []


def api_token(visitor: Visitor) -> str:
    """A token of the visitor's own, as the admin shows it."""
    form = "/desk/renders/apitoken/add/"
    [me] = re.findall(r'<option value="([\w-]+)" selected>', visitor.get(form).text)
    page = visitor.send(form, user=me, name="shop", expires_at_0="", expires_at_1="").text
    return f"Bearer {re.findall(r'renders_[A-Za-z0-9_-]{43}', page)[0]}"


def redis_keys(redis: EmbeddedRedis) -> list[str]:
    from renders.coordination.clients import connect

    return [key.decode() for key in connect(redis.url).scan_iter()]
