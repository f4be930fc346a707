"""The running API against its own document, by Schemathesis: what it says is what it does."""

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.contrib.auth import get_user_model
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.handlers.wsgi import WSGIHandler
from django.utils import timezone
from hypothesis import strategies
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.transport.wsgi import WSGITransport

from renders import transitions
from renders.api import reading
from renders.api.listing import cursor_of
from renders.api.schemas import RENDER_ID
from renders.models import ApiToken, RenderJob
from renders.services import create_render
from renders.states import Kind

ADDRESS = "/api/renders/openapi.json"
CHECKS = {
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "positive_data_acceptance",
    "negative_data_rejection",
    "unsupported_method",
    "ignored_auth",
}
CONFIG = """
seed = 7

[auth.openapi.token]
bearer = "{token}"

[generation]
deterministic = true
max-examples = 10
"""


@pytest.fixture
def token(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of somebody who has renders; the one that the examples name can be asked for everything."""
    settings.MEDIA_ROOT = tmp_path
    settings.ALLOWED_HOSTS = ["localhost"]
    # Both sides of every limit are tried: small ones are tried sooner.
    settings.RENDERS = {
        **settings.RENDERS,
        "MAX_PROMPT_LENGTH": 100,
        "API_REQUESTS_PER_MINUTE": 10**6,
    }
    monkeypatch.setattr(reading, "MOST_RENDERS", 5)
    # Which avatar is whose, no schema can say: staff may use each.
    user = get_user_model().objects.create_superuser("ann")
    now = timezone.now()
    RenderJob.objects.create(id=RENDER_ID, prompt="A boat", created_by=user)
    transitions.claim(RENDER_ID, now, "default")
    transitions.refuse(RENDER_ID, now, now, code="refused", message="Sume refused it.")
    file = default_storage.save("a.png", ContentFile(b"\x89PNG"))
    artifact = {"type": "image", "content_type": "image/png", "file": file, "url": ""}
    transitions.store(RENDER_ID, result={"artifacts": [artifact]})
    rows = [create_render(f"Boat {number}", user=user) for number in range(3)]
    # Which text is a cursor, no schema can say.
    cursors = strategies.sampled_from([cursor_of(row) for row in rows])
    schemathesis.openapi.format("renders-cursor", cursors)
    return ApiToken.issue(user=user, name="Conformance")[1]


def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """The site; each reply is read and closed, and with it the thread's database connection."""
    response = WSGIHandler()(environ, start_response)
    try:
        return [b"".join(response)]
    finally:
        response.close()


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is meant for a network is unknown to WSGI; Schemathesis 4.32 forgets that once."""
    send = WSGITransport.send

    def without_network(self: Any, case: Any, **kwargs: Any) -> Any:
        for name in ("max_redirects", "verify", "cert", "proxies"):
            kwargs.pop(name, None)
        return send(self, case, **kwargs)

    monkeypatch.setattr(WSGITransport, "send", without_network)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_api_does_what_its_document_says(database: str, redis: Any, token: str) -> None:
    config = SchemathesisConfig.from_str(CONFIG.format(token=token))
    schema = schemathesis.openapi.from_wsgi(ADDRESS, application, config=config)
    succeeded: Counter[str] = Counter()
    checks: Counter[str] = Counter()
    faults = set()
    for event in from_schema(schema).execute():
        if isinstance(event, events.FatalError):
            raise event.exception
        if isinstance(event, events.NonFatalError):
            faults.add(f"{event.label}: {event.value}")
        if not isinstance(event, events.ScenarioFinished):
            continue
        for pk, interaction in event.recorder.interactions.items():
            if interaction.response and interaction.response.status_code < 300:
                succeeded[event.recorder.cases[pk].value.operation.label] += 1
        for node in chain.from_iterable(event.recorder.checks.values()):
            checks[node.name] += 1
            if node.failure_info:
                failure = node.failure_info.failure
                faults.add(f"{node.name}: {failure}\n{node.failure_info.code_sample}")

    assert not faults, "\n\n".join(sorted(faults))
    # Nothing passes for want of a try.
    operations = {operation.ok().label for operation in schema.get_all_operations()}
    assert set(succeeded) == operations
    assert set(checks) >= CHECKS
    assert set(RenderJob.objects.values_list("kind", flat=True)) == set(Kind)
