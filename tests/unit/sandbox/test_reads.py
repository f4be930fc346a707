"""The reads about the workspace and its avatars, over HTTP."""

import pytest

AVATAR = "/v1/models/sume/avatar/v1.0/runs"
AVATAR_VIDEO = "/v1/models/sume/avatar-video/v1.0/runs"
READS = [
    "/health",
    "/v1/health",
    "/v1/catalog",
    "/v1/open/catalog/any/model",
    "/v1/me",
    "/v1/balance",
    "/v1/usage",
    "/v1/jobs",
    "/v1/avatars",
    "/v1/avatar-videos",
]


def make(caller, handle: str, prompt: str = "a librarian") -> str:
    """The id of the job that makes this avatar."""
    body = {"avatar_handle": handle, "input": {"type": "prompt", "prompt": prompt}}
    reply = caller.send("POST", AVATAR, json=body)
    assert reply.status_code == 202, reply.text
    return reply.json()["data"]["job"]["id"]


def film(caller, handle: str) -> str:
    """The id of the job that makes a video of this avatar."""
    body = {"avatar_handle": handle, "script": "Hello and welcome."}
    reply = caller.send("POST", AVATAR_VIDEO, json=body)
    assert reply.status_code == 202, reply.text
    return reply.json()["data"]["job"]["id"]


def data(caller, path: str) -> dict:
    reply = caller.get(path)
    assert reply.status_code == 200, reply.text
    return reply.json()["data"]


def handles(caller, query: str = "") -> list[str]:
    return [avatar["handle"] for avatar in data(caller, f"/v1/avatars{query}")["avatars"]]


@pytest.mark.parametrize("path", READS)
def test_each_read_needs_a_key_and_takes_it_in_either_header(start, path):
    _, caller = start(key="right")
    assert caller.get(path, headers={"Authorization": "Bearer right"}).status_code == 200
    own = {"Authorization": "", "x-api-key": "right"}
    assert caller.get(path, headers=own).status_code == 200
    assert caller.get(path, headers={"Authorization": "", "x-api-key": "wrong"}).status_code == 401


@pytest.mark.parametrize("path", READS)
def test_each_read_counts_against_the_budget_of_reads(start, path):
    _, caller = start(writes_per_minute=1)
    assert caller.get(path).headers["RateLimit-Remaining"] == "39"
    assert caller.get(path).headers["RateLimit-Limit"] == "40"


@pytest.mark.parametrize("path", [*READS, "/v1/avatars/avatar_none", "/v1/avatar-videos/none"])
def test_each_read_meets_the_faults_that_are_for_any(start, path):
    sandbox, caller = start()
    sandbox.faults.add("unavailable")
    assert caller.get(path).status_code == 503
    assert sandbox.ledger.reads == {}


@pytest.mark.parametrize("path", ["/health", "/v1/health"])
def test_the_health_stands_outside_the_envelope(start, path):
    _, caller = start()
    assert caller.get(path).json()["status"] == "ok"


def test_the_catalog_lists_the_paths_that_can_be_asked(start):
    _, caller = start()
    made = data(caller, "/v1/catalog")["capabilities"]
    assert {one["kind"] for one in made} == {"image", "video", "avatar", "avatar_video"}
    for one in made:
        assert caller.send(one["method"], one["path"], json={}).status_code == 422


def test_the_account_has_an_id(start):
    _, caller = start()
    assert data(caller, "/v1/me")["id"]


def test_the_usage_lists_what_each_job_cost_newest_first(start):
    _, caller = start()
    paid, refunded = caller.job("a"), caller.job("b", prompt="FAIL")
    rows = data(caller, "/v1/usage")["usage"]
    costs = [(row["job_id"], row["status"], row["billable_amount_usd_micros"]) for row in rows]
    assert costs == [(refunded, "refunded", 0), (paid, "charged", 90_000)]
    assert [row["job_id"] for row in data(caller, "/v1/usage?limit=1")["usage"]] == [refunded]


def test_avatars_are_listed_newest_first_and_by_handle_and_status(start):
    _, caller = start()
    for handle, prompt in (("mara", "x"), ("@vera", "x"), ("olga", "FAIL")):
        make(caller, handle, prompt)
    assert handles(caller) == ["olga", "vera", "mara", "demo"]
    assert handles(caller, "?limit=2") == ["olga", "vera"]
    assert handles(caller, "?status=ready") == ["vera", "mara", "demo"]
    assert handles(caller, "?status=completed") == ["vera", "mara", "demo"]
    assert handles(caller, "?status=failed") == ["olga"]
    assert handles(caller, "?status=queued") == []
    assert handles(caller, "?handle=vera") == handles(caller, "?handle=@vera") == ["vera"]
    assert handles(caller, "?handle=vera&status=failed") == []
    assert handles(caller, "?handle=nobody") == []


@pytest.mark.parametrize(
    ("query", "path"),
    [("status=done", "status"), ("limit=0", "limit"), ("limit=101", "limit"), ("limit=x", "limit")],
)
def test_a_filter_that_is_not_known_is_refused_by_name(start, query, path):
    _, caller = start()
    reply = caller.get(f"/v1/avatars?{query}")
    assert reply.status_code == 422
    assert [one["path"] for one in reply.json()["error"]["details"]["errors"]] == [path]


def test_an_avatar_is_read_by_its_id_and_its_picture_is_there(start):
    _, caller = start()
    job_id = make(caller, "@mara")
    [listed] = data(caller, "/v1/avatars?handle=mara")["avatars"]
    read = data(caller, f"/v1/avatars/{listed['id']}")
    assert read["avatar"] == listed
    assert read["job"]["id"] == listed["job_id"] == job_id
    assert listed["source_type"] == "prompt"
    picture = caller.session.get(listed["preview_url"], timeout=10)
    assert picture.headers["Content-Type"] == "image/png"
    assert listed["artifacts"][0]["url"] == listed["preview_url"]


def test_an_avatar_that_was_there_from_the_start_has_no_job(start):
    _, caller = start()
    [listed] = data(caller, "/v1/avatars")["avatars"]
    read = data(caller, f"/v1/avatars/{listed['id']}")
    assert read == {"avatar": listed}
    assert "job_id" not in listed and "preview_url" not in listed


def test_avatar_videos_are_listed_and_read_by_their_id(start):
    _, caller = start()
    first, second = film(caller, "demo"), film(caller, "@demo")
    caller.job()
    videos = data(caller, "/v1/avatar-videos")["avatar_videos"]
    assert [video["job_id"] for video in videos] == [second, first]
    assert {video["status"] for video in videos} == {"ready"}
    assert {video["avatar_handle"] for video in videos} == {"demo"}
    read = data(caller, f"/v1/avatar-videos/{videos[0]['id']}")
    assert (read["avatar_video"], read["job"]["id"]) == (videos[0], second)
    clip = caller.session.get(videos[0]["video_url"], timeout=10)
    assert clip.headers["Content-Type"] == "image/gif"
    assert len(data(caller, "/v1/avatar-videos?limit=1")["avatar_videos"]) == 1


def test_an_avatar_video_that_still_runs_has_no_file(start):
    _, caller = start(processing_seconds=60)
    film(caller, "demo")
    [video] = data(caller, "/v1/avatar-videos")["avatar_videos"]
    assert video["status"] == video["job_status"] != "ready"
    assert "video_url" not in video


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v1/avatars/avatar_none", "avatar_not_found"),
        ("/v1/avatar-videos/avatar_video_none", "avatar_video_not_found"),
    ],
)
def test_what_is_not_there_is_not_found(start, path, code):
    _, caller = start()
    reply = caller.get(path)
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, code)


def test_a_body_of_another_kind_is_refused_field_by_field(start):
    sandbox, caller = start()
    reply = caller.submit(path=AVATAR, model="sume/auto")
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "validation_error")
    errors = reply.json()["error"]["details"]["errors"]
    assert [one["path"] for one in errors] == ["avatar_handle", "input", "prompt", "model"]
    assert all(one["message"] for one in errors)
    assert sandbox.ledger.bills == []
