"""What tests of the API share: a caller, and renders in every state."""

import json

from django.test import Client
from django.utils import timezone

from renders import transitions
from renders.models import ApiToken
from renders.services import create_render
from renders.states import Status

URL = "/api/renders/"


class Caller:
    """A program with a token: no session, no CSRF token."""

    def __init__(self, user):
        self.user = user
        self.token, self.clear = ApiToken.issue(user=user, name="Test")
        self.client = Client(enforce_csrf_checks=True, raise_request_exception=False)

    def call(self, method, path="", body=None, **headers):
        url = path if path.startswith(("/", "http")) else URL + path
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent.setdefault("Authorization", f"Bearer {self.clear}")
        data = body if isinstance(body, str | bytes) else json.dumps(body)
        content = {} if body is None else {"data": data, "content_type": "application/json"}
        return self.client.generic(method, url, headers=sent, **content)

    def get(self, path="", **headers):
        return self.call("GET", path, **headers)

    def post(self, path="", body=None, **headers):
        return self.call("POST", path, body, **headers)


def problem(response, status, code=None):
    """The problem document of this reply."""
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == status
    assert body.keys() - {"errors"} == {"type", "title", "status", "code", "detail"}
    assert code in (None, body["code"])
    return body


def failed(user, prompt="A boat"):
    """A render that Sume refused."""
    row, now = create_render(prompt, user=user), timezone.now()
    transitions.claim(row.pk, now, "default")
    transitions.refuse(row.pk, now, now, code="refused", message="Change it.")
    row.refresh_from_db()
    return row


def submitted(user):
    """A render that Sume has."""
    row, now = create_render("A boat", user=user), timezone.now()
    transitions.claim(row.pk, now, "default")
    transitions.record_submitted(
        row.pk, now, job_id="job-1", sume_status="processing", hit=False, next_poll_at=now
    )
    return row


def completed(user, artifact):
    """A render with one artifact."""
    row, now = submitted(user), timezone.now()
    transitions.end(row.pk, 0, now, Status.COMPLETED, sume_status="completed", cost=40_000)
    transitions.store(row.pk, result={"artifacts": [artifact]})
    return row
