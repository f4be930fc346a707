"""Avatars: which there are, under which handle, and what may be asked of them."""

import json

import pytest

from renders.sandbox.replies import ApiError

from .support import Bench

PROMPT = {"type": "prompt", "prompt": "a librarian"}


def make(bench: Bench, handle: str = "mara", *, key: str | None = None, **fields) -> dict:
    """The reply to the submit of an avatar."""
    body = {"avatar_handle": handle, "input": PROMPT} | fields
    return bench.rules.submit("avatar", json.dumps(body).encode(), key, path="/v1/avatar")


def film(bench: Bench, handle: str, script: str = "Hello and welcome.") -> dict:
    """The reply to the submit of an avatar video."""
    body = {"avatar_handle": handle, "script": script}
    return bench.rules.submit("avatar_video", json.dumps(body).encode(), None, path="/v1/film")


def refusal(call, *args, **fields) -> tuple[int, str, list[str]]:
    with pytest.raises(ApiError) as caught:
        call(*args, **fields)
    assert caught.value.retryable is False
    return caught.value.status, caught.value.code, [path for path, _ in caught.value.errors]


def statuses(bench: Bench, handle: str = "mara") -> list[str]:
    bench.rules.settle()
    return [avatar.status for avatar in bench.rules.avatars.listed(handle)]


def test_one_avatar_is_ready_from_the_start(bench):
    assert [avatar.handle for avatar in bench.rules.avatars.listed()] == ["demo"]
    assert film(bench, "demo")["job"]["type"] == "avatar_video"
    assert film(bench, "@demo")["job"]["status"] == "queued"


def test_others_can_be_named_in_its_place():
    bench = Bench(avatars=("mara", "@vera"))
    assert [avatar.handle for avatar in bench.rules.avatars.listed()] == ["vera", "mara"]
    assert refusal(film, bench, "demo")[1] == "avatar_not_found"


@pytest.mark.parametrize("avatars", [("a b",), ("",), (5,), "mara"])
def test_what_is_no_handle_is_no_avatar_to_start_with(avatars):
    with pytest.raises(ValueError, match="avatars"):
        Bench(avatars=avatars)


def test_an_avatar_is_ready_when_its_job_is_completed(bench):
    make(bench, "@mara")
    seen = [statuses(bench)]
    for seconds in (2, 5):
        bench.clock.turn(seconds)
        seen.append(statuses(bench))
    assert seen == [["queued"], ["processing"], ["ready"]]


@pytest.mark.parametrize("seconds", [0, 2])
def test_a_video_of_an_avatar_that_is_not_ready_is_refused_and_not_billed(bench, seconds):
    make(bench)
    bench.clock.turn(seconds)
    assert refusal(film, bench, "mara") == (422, "avatar_not_ready", ["avatar_handle"])
    bench.clock.turn(7)
    assert film(bench, "mara")
    assert len(bench.ledger.bills) == 2


def test_a_video_of_an_unknown_avatar_is_refused_and_not_billed(bench):
    assert refusal(film, bench, "nobody") == (422, "avatar_not_found", ["avatar_handle"])
    assert bench.ledger.bills == []


@pytest.mark.parametrize("handle", ["mara", "@mara", "demo"])
@pytest.mark.parametrize("seconds", [0, 7])
def test_a_handle_that_is_taken_is_refused_and_not_billed(bench, handle, seconds):
    make(bench)
    bench.clock.turn(seconds)
    assert refusal(make, bench, handle) == (422, "avatar_handle_taken", ["avatar_handle"])
    assert len(bench.ledger.bills) == 1


def test_the_same_submit_again_finds_its_job_though_the_handle_is_taken(bench):
    first = make(bench, key="k")
    again = make(bench, key="k")
    assert (again["job"], again["idempotency_hit"]) == (first["job"], True)
    assert statuses(bench) == ["queued"]


def test_an_avatar_that_failed_is_not_ready_and_leaves_its_handle_free(bench):
    make(bench, input={"type": "prompt", "prompt": "FAIL please"})
    bench.clock.turn(7)
    assert refusal(film, bench, "mara")[1] == "avatar_not_ready"
    make(bench)
    bench.clock.turn(7)
    assert statuses(bench) == ["ready", "failed"]
    assert film(bench, "mara")


def test_an_avatar_that_was_canceled_leaves_its_handle_free(bench):
    bench.rules.cancel(make(bench)["job"]["id"], None)
    make(bench)
    assert statuses(bench) == ["queued", "canceled"]


def test_a_request_that_is_refused_makes_no_avatar():
    bench = Bench(balance_usd_micros=0)
    with pytest.raises(ApiError, match="balance"):
        make(bench)
    assert statuses(bench) == []


def test_the_magic_words_are_read_in_an_avatars_prompt_and_in_a_script(bench):
    assert refusal(film, bench, "demo", "REJECT this")[1] == "prompt_rejected"
    rejected = {"type": "prompt", "prompt": "REJECT this"}
    assert refusal(make, bench, input=rejected)[1] == "prompt_rejected"
    job_id = film(bench, "demo", "FAIL:content_policy_rejected at this")["job"]["id"]
    bench.clock.turn(7)
    error = bench.rules.status(job_id)["job"]["error"]
    assert error["public_reason"] == "content_policy_rejected"


@pytest.mark.parametrize(
    "source",
    [
        {"type": "photo", "image_url": "https://a.example/FAIL.jpg"},
        {"type": "props", "ethnicity": "Black", "sex": "male", "age": 44},
    ],
)
def test_a_photo_and_properties_have_no_magic_words(bench, source):
    job_id = make(bench, "FAIL", input=source)["job"]["id"]
    make(bench, "REJECT", input=source)
    bench.clock.turn(7)
    assert bench.word(job_id) == "completed"


def test_status_and_result_of_an_avatars_job_carry_the_avatar(bench):
    job_id = make(bench, "@mara")["job"]["id"]
    waiting = bench.rules.status(job_id)["avatar"]
    bench.clock.turn(7)
    done = bench.rules.status(job_id, base_url="http://box")["avatar"]
    url = f"http://box/m/{job_id}/picture.png"
    assert (waiting["status"], done["status"]) == ("queued", "ready")
    assert "preview_url" not in waiting and done["preview_url"] == url
    assert done["handle"] == "mara" and done["id"].startswith("avatar_")
    assert (done["job_id"], done["job_status"]) == (job_id, "completed")
    assert bench.rules.result(job_id, base_url="http://box")["avatar"] == done


def test_other_jobs_carry_no_avatar(bench):
    ids = [film(bench, "demo")["job"]["id"], bench.submit()["job"]["id"]]
    bench.clock.turn(7)
    for job_id in ids:
        assert "avatar" not in bench.rules.status(job_id)
        assert "avatar" not in bench.rules.result(job_id)
