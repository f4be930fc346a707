"""The API for a person with a session: makes and shows renders; errors are problem documents."""

import json

import pytest
from django.test import Client
from django.utils import timezone

from renders import transitions
from renders.models import RenderJob
from renders.services import create_render
from tests.unit.api.support import URL, completed, problem

pytestmark = pytest.mark.django_db
NOBODY = "0b7e4f0a-0000-4000-8000-000000000000"


@pytest.fixture
def ann(django_user_model):
    return django_user_model.objects.create_user("ann")


@pytest.fixture
def bob(django_user_model):
    return django_user_model.objects.create_user("bob")


@pytest.fixture
def api(client, ann):
    client.force_login(ann)
    return client


def post(client, body, content_type="application/json"):
    data = body if isinstance(body, str | bytes) else json.dumps(body)
    return client.post(URL, data, content_type=content_type)


def test_a_post_makes_a_render_and_says_where_it_is(api, ann):
    response = post(
        api,
        {
            "prompt": "A boat",
            "kind": "video",
            "model": "sume/fast",
            "params": {"seed": 7},
            "priority": -3,
            "reference": "order-1",
        },
    )
    body = response.json()
    row = RenderJob.objects.get()

    assert response.status_code == 202
    assert row.created_by == ann
    assert response.headers["Location"] == f"http://testserver{URL}{row.pk}/"
    assert api.get(response.headers["Location"]).json() == body
    assert body == {
        "id": str(row.pk),
        "workspace": "default",
        "kind": "video",
        "model": "sume/fast",
        "prompt": "A boat",
        "params": {"seed": 7},
        "priority": -3,
        "reference": "order-1",
        "status": "pending",
        "sume_status": "",
        "created_at": body["created_at"],
        "submitted_at": None,
        "cancel_requested_at": None,
        "finished_at": None,
        "erased_at": None,
        "error": None,
        "waiting_reason": None,
        "artifacts": [],
        "cost_usd_micros": None,
        "retry_of": None,
        "url": f"http://testserver{URL}{row.pk}/",
        "html_url": f"http://testserver/renders/{row.pk}/",
    }


def test_a_prompt_is_enough(api):
    assert post(api, {"prompt": "A boat"}).json()["kind"] == "image"


def test_the_same_reference_gives_the_same_render(api):
    bodies = [post(api, {"prompt": "A boat", "reference": "order-1"}).json() for _ in range(2)]

    assert bodies[0] == bodies[1]
    assert RenderJob.objects.count() == 1


@pytest.mark.parametrize("method", ["get", "post", "put", "delete"])
@pytest.mark.parametrize("path", ["", f"{NOBODY}/"])
def test_without_a_login_the_answer_is_401_and_no_redirect(client, method, path):
    response = getattr(client, method)(URL + path, content_type="application/json")

    problem(response, 401)
    assert response.headers["WWW-Authenticate"]


def test_a_post_needs_the_csrf_token(ann):
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)
    problem(post(client, {"prompt": "A boat"}), 403)
    assert not RenderJob.objects.exists()

    client.get("/renders/")  # sets the cookie
    token = client.cookies["csrftoken"].value
    response = client.post(
        URL, {"prompt": "A boat"}, "application/json", headers={"X-CSRFToken": token}
    )
    assert response.status_code == 202


@pytest.mark.parametrize(
    "body",
    [
        " ",
        "{",
        "[]",
        '"text"',
        "null",
        '{"prompt": "x", "params": {"a": NaN}}',
        '{"prompt": "x", "priority": Infinity}',
        '{"prompt": "x", "priority": -Infinity}',
        '{"prompt": "x", "priority": %s}' % ("9" * 5000),
        "[" * 50_000,
        b'{"prompt": "\xff"}',
        '{"prompt": "x"}'.encode("utf-16"),
    ],
)
def test_what_is_no_json_object_is_refused(api, body):
    problem(post(api, body), 400)
    assert not RenderJob.objects.exists()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "prompt"),
        ({"prompt": " "}, "prompt"),
        ({"prompt": 7}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"prompt": "\ud800"}, "prompt"),
        ({"prompt": "a\x00b"}, "prompt"),
        ({"prompt": "x", "kind": "song"}, "kind"),
        ({"prompt": "x", "kind": ["image"]}, "kind"),
        ({"prompt": "x", "kind": {}}, "kind"),
        ({"prompt": "x", "model": ""}, "model"),
        ({"prompt": "x", "params": [1]}, "params"),
        ({"prompt": "x", "params": {"prompt": "again"}}, "params.prompt"),
        ({"prompt": "x", "priority": 1.5}, "priority"),
        ({"prompt": "x", "priority": True}, "priority"),
        ({"prompt": "x", "priority": 10**30}, "priority"),
        ({"prompt": "x", "reference": 7}, "reference"),
        ({"prompt": "x", "status": "completed"}, "status"),
        ({"prompt": "x", "user": 1}, "user"),
    ],
)
def test_an_error_names_its_field(api, body, field):
    errors = problem(post(api, body), 422)["errors"]

    assert [error["field"] for error in errors] == [field]
    assert errors[0]["message"]
    assert not RenderJob.objects.exists()


def test_all_errors_come_at_once(api):
    errors = problem(post(api, {"kind": "song", "priority": "high", "colour": 1}), 422)["errors"]

    assert {error["field"] for error in errors} == {"prompt", "kind", "priority", "colour"}


def test_a_number_that_overflows_is_refused(api):
    problem(post(api, '{"prompt": "x", "params": {"a": 1e999}}'), 422)


@pytest.mark.parametrize("content_type", ["text/plain", "multipart/form-data; boundary=x", ""])
def test_only_json_is_read(api, content_type):
    problem(post(api, '{"prompt": "x"}', content_type), 415)


def test_a_large_body_is_refused(api):
    problem(post(api, {"prompt": "x", "params": {"a": "y" * 10_000_000}}), 413)


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("put", "", "GET, POST, HEAD, OPTIONS"),
        ("delete", "", "GET, POST, HEAD, OPTIONS"),
        ("post", f"{NOBODY}/", "GET, HEAD, OPTIONS"),
        ("patch", f"{NOBODY}/", "GET, HEAD, OPTIONS"),
    ],
)
def test_other_methods_are_refused(api, method, path, allow):
    response = getattr(api, method)(URL + path, "{}", content_type="application/json")

    problem(response, 405)
    assert response.headers["Allow"] == allow


@pytest.mark.parametrize("path", [f"{NOBODY}/", "none/", "1/2/"])
def test_what_does_not_exist_is_a_problem_too(api, path):
    problem(api.get(URL + path), 404)


def test_a_render_of_another_person_is_not_there(api, bob):
    row = create_render("Bob's secret", user=bob)

    problem(api.get(f"{URL}{row.pk}/"), 404)
    assert api.get(URL).json() == {"renders": [], "next": None}


def test_the_list_is_newest_first_and_can_be_narrowed(api, ann):
    rows = [create_render(f"Boat {number}", user=ann) for number in range(3)]
    transitions.claim(rows[1].pk, timezone.now(), "default")

    def ids(query=""):
        return [row["id"] for row in api.get(URL + query).json()["renders"]]

    assert ids() == [str(row.pk) for row in reversed(rows)]
    assert ids("?limit=2") == [str(rows[2].pk), str(rows[1].pk)]
    assert ids("?status=submitting") == [str(rows[1].pk)]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "limit=-1", "limit=x", "limit=", "limit=٣", "status=done"]
)
def test_a_query_that_means_nothing_is_refused(api, query):
    errors = problem(api.get(f"{URL}?{query}"), 422)["errors"]

    assert errors[0]["field"] == query.partition("=")[0]


def test_the_list_takes_a_fixed_number_of_queries(api, ann, django_assert_max_num_queries):
    for number in range(20):
        create_render(f"Boat {number}", user=ann)
    with django_assert_max_num_queries(3):
        api.get(URL)


def test_media_come_by_own_addresses_and_never_by_signed_ones(api, ann, settings):
    settings.RENDERS = {**settings.RENDERS, "API_KEY": "sk-canary"}
    artifact = {
        "type": "image",
        "content_type": "image/png",
        "url": "https://media.example/a.png?X-Signature=hush",
        "file": "renders/a.png",
    }
    row = completed(ann, artifact)
    for path in (URL, f"{URL}{row.pk}/"):
        text = api.get(path).content.decode()
        assert "hush" not in text and "media.example" not in text and "sk-canary" not in text
        assert row.idempotency_key not in text
    assert api.get(f"{URL}{row.pk}/").json()["artifacts"] == [
        {
            "type": "image",
            "content_type": "image/png",
            "url": f"http://testserver{URL}{row.pk}/artifacts/0/",
        }
    ]


def test_a_failed_render_says_why(api, ann):
    row = create_render("A boat", user=ann)
    now = timezone.now()
    transitions.claim(row.pk, now, "default")
    transitions.refuse(row.pk, now, now, code="content_policy", message="Change it.")

    assert api.get(f"{URL}{row.pk}/").json()["error"] == {
        "code": "content_policy",
        "message": "Change it.",
    }


def test_replies_are_not_kept_by_caches(api):
    assert "no-store" in api.get(URL).headers["Cache-Control"]


def test_an_address_with_a_line_end_is_told_of_like_any_other_that_is_not_there(client):
    response = client.get("/api/renders/a%0Ab/")

    assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")
