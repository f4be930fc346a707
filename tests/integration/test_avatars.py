"""An avatar and a clip in which it speaks, by the app and the stand-in, from start to end."""

import threading
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from renders import services
from renders.models import Avatar, RenderJob
from renders.sandbox import Sandbox
from renders.services import avatars
from renders.services.references import door
from tests.integration import engine

pytestmark = pytest.mark.usefixtures("database", "redis")


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Any) -> None:
    settings.MEDIA_ROOT = tmp_path
    avatars.forget()


def ended(sandbox: Sandbox, render: RenderJob) -> RenderJob:
    engine.submit(render)
    assert render.status == "submitted", render.error_message
    tick = threading.Event()
    while sandbox.rules.finished_job(render.sume_job_id) is None:
        tick.wait(0.05)
    engine.make_due(render)
    engine.poll(render)
    engine.finish(render)
    return render


def test_an_avatar_is_made_and_speaks_for_its_owner(sandbox: Sandbox) -> None:
    ann = get_user_model().objects.create_user("ann")
    params = {"avatar_handle": "@mara", "ethnicity": "White", "sex": "female", "age": 40}
    avatar = services.create_render("", kind="avatar", params=params, user=ann)

    assert ended(sandbox, avatar).status == "completed"
    assert Avatar.objects.get().owner == ann
    assert avatars.choices(ann) == ["mara"]

    request = {"prompt": "Hello!", "kind": "avatar_video", "params": {"avatar_handle": "mara"}}
    [(clip, _)] = services.create([request], ann, door(ann))
    assert ended(sandbox, clip).status == "completed"
    assert clip.artifacts[0]["file"]
    assert len(sandbox.ledger.bills) == 2


def test_an_avatar_that_is_not_there_is_refused_by_sume_unbilled(sandbox: Sandbox) -> None:
    clip = services.create_render("Hi", kind="avatar_video", params={"avatar_handle": "nobody"})
    engine.submit(clip)

    assert (clip.status, clip.cost_usd_micros) == ("failed", 0)
    assert "avatar_handle" in clip.error_message
    assert not sandbox.ledger.bills
