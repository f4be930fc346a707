"""The OpenAPI document says what the code says. What the API does, Schemathesis compares."""

import json
import re

import pytest
from django.urls import get_resolver

from renders.api import urls
from renders.api.document import document
from renders.api.listing import PARAMETERS
from renders.presentation.problems import STATUSES
from renders.services import create_render
from renders.services.validation import REQUEST_FIELDS
from renders.states import Kind, Status
from tests.unit.api.support import URL

pytestmark = pytest.mark.django_db
DOCUMENT = document()
SCHEMAS = DOCUMENT["components"]["schemas"]
NAMES = {"pk": "id"}
OPERATIONS = [
    operation
    for path in DOCUMENT["paths"].values()
    for method, operation in path.items()
    if method != "parameters"
]


def test_everybody_may_read_it(client):
    response = client.get(f"{URL}openapi.json")

    assert response.json() == json.loads(json.dumps(DOCUMENT))
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "public, max-age=300"
    assert client.head(f"{URL}openapi.json").status_code == 200


def test_it_has_every_address_and_method():
    known = {}
    for pattern in urls.urlpatterns:
        if pattern.name:
            route = re.sub(
                r"<\w+:(\w+)>",
                lambda found: f"{{{NAMES.get(found[1], found[1])}}}",
                str(pattern.pattern),
            )
            view = pattern.callback.view_class
            known[URL + route] = {
                name for name in ("get", "post", "put", "delete") if hasattr(view, name)
            }
    told = {path: set(methods) - {"parameters"} for path, methods in DOCUMENT["paths"].items()}

    assert told == known
    assert get_resolver().resolve(URL)


def test_every_reference_leads_somewhere():
    text = json.dumps(DOCUMENT)
    for reference in set(re.findall(r'"\$ref": "#/([^"]+)"', text)):
        found = DOCUMENT
        for part in reference.split("/"):
            found = found[part]
    names = [operation["operationId"] for operation in OPERATIONS]
    assert len(names) == len(set(names))
    assert set(re.findall(r'"operationId": "(\w+)", "parameters": {"id"', text)) <= set(names)


def test_its_fields_are_those_of_the_code(ann):
    create_render("A boat", user=ann.user)
    [shown] = ann.get().json()["renders"]

    assert list(shown) == list(SCHEMAS["Render"]["properties"])
    assert list(shown) == SCHEMAS["Render"]["required"] == list(SCHEMAS["Render"]["example"])
    assert set(SCHEMAS["ImageRequest"]["properties"]) == set(REQUEST_FIELDS)
    assert SCHEMAS["Render"]["properties"]["status"]["enum"] == Status.values
    assert SCHEMAS["Render"]["properties"]["kind"]["enum"] == Kind.values


def test_its_parameters_are_those_of_the_code():
    listed = DOCUMENT["paths"][URL]["get"]["parameters"]

    assert [parameter["name"] for parameter in listed] == list(PARAMETERS)


def test_every_operation_says_what_can_go_wrong():
    for operation in OPERATIONS:
        told = set(operation["responses"])
        assert "500" in told
        assert operation["summary"]
        if operation.get("security") != []:
            assert {"401", "429"} <= told
    told = {status for operation in OPERATIONS for status in operation["responses"]}
    assert {int(status) for status in told if status >= "4"} == set(STATUSES) - {405}


def test_it_shows_both_reasons_to_wait():
    [content] = DOCUMENT["components"]["responses"]["Problem429"]["content"].values()
    shown = {name: example["value"]["code"] for name, example in content["examples"].items()}

    assert shown == {name: name for name in ("too_many_requests", "too_many_waiting")}
