"""A face is personal: its owner has it speak, staff may, others once it is released."""

import json
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from renders import services
from renders.exceptions import InvalidRender, OutcomeUnknown
from renders.housekeeping import erasing
from renders.lifecycle import finishing
from renders.models import Avatar, RenderJob, UserWorkspace
from renders.presentation.forms import RenderForm
from renders.services import avatars, drafts
from renders.services.import_files import Layout
from renders.services.references import door
from renders.states import Status
from tests.rows import stored

pytestmark = pytest.mark.django_db
SPEAKS = {"prompt": "Hello!", "kind": "avatar_video", "params": {"avatar_handle": "mara"}}
MAKES = {"prompt": "A baker", "kind": "avatar", "params": {"avatar_handle": "mara"}}


@pytest.fixture(autouse=True)
def nothing_kept(followed):
    avatars.forget()
    yield
    avatars.forget()


@pytest.fixture
def sam(django_user_model):
    sam = django_user_model.objects.create_user("sam", is_staff=True)
    sam.user_permissions.add(Permission.objects.get(codename="view_renderjob"))
    return sam


@pytest.fixture
def mara(ann):
    return Avatar.objects.create(handle="mara", owner=ann)


def by_door(user, request=SPEAKS):
    return services.create([request], user, door(user))


# --- Who may ------------------------------------------------------------------------------


def test_the_owner_and_staff_have_it_speak_and_nobody_else(mara, ann, bob, sam):
    assert by_door(ann) and by_door(sam)

    with pytest.raises(InvalidRender, match="neither yours nor released") as refused:
        by_door(bob)
    assert refused.value.field == "params.avatar_handle"
    assert not RenderJob.objects.filter(created_by=bob).exists()


def test_what_is_released_may_be_used_by_everybody(mara, bob):
    Avatar.objects.update(released=True)

    assert by_door(bob)


def test_an_avatar_that_was_not_made_here_is_for_staff(ann, sam):
    assert by_door(sam)
    with pytest.raises(InvalidRender):
        by_door(ann)


def test_the_sites_own_code_decides_for_itself(mara, bob):
    assert services.create_render(**SPEAKS, user=bob)


def test_the_handle_of_another_persons_avatar_is_taken(mara, ann, bob, sam):
    assert by_door(ann, MAKES)
    for user in (bob, sam):
        with pytest.raises(InvalidRender, match="The handle mara is taken"):
            by_door(user, MAKES)


def test_a_retry_asks_again_whose_face_it_is(mara, bob):
    Avatar.objects.update(released=True)
    [(row, _)] = by_door(bob)
    services.cancel_render(row)
    Avatar.objects.update(released=False)

    with pytest.raises(InvalidRender, match="neither yours nor released"):
        services.retry_render(row, user=bob)
    assert services.retry_render(row)  # the site's own code


def test_a_request_that_comes_again_by_its_reference_finds_its_row(mara, bob):
    Avatar.objects.update(released=True)
    [(row, _)] = by_door(bob, {**SPEAKS, "reference": "r1"})
    Avatar.objects.update(released=False)

    assert by_door(bob, {**SPEAKS, "reference": "r1"}) == [(row, False)]


def test_a_workspace_of_ones_own_that_is_gone_opens_no_door(mara, bob, settings):
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"other": {"API_KEY": "sk-other"}}}
    UserWorkspace.objects.create(user=bob, workspace="gone")

    with pytest.raises(InvalidRender, match="neither yours nor released"):
        by_door(bob, {**SPEAKS, "workspace": "default"})


@pytest.mark.parametrize(
    "request_",
    [
        {"prompt": "Hi", "kind": "video", "params": {"avatar_handle": "mara"}},
        {"prompt": "Hi", "kind": "image", "model": "sume/avatar/v1.0"},
        {**SPEAKS, "params": {"avatar_handle": "bobby", "avatarId": "mara"}},
        {**SPEAKS, "params": {"avatar_handle": "bobby", "AVATAR-ID": "mara"}},
    ],
)
def test_no_other_kind_and_no_other_spelling_is_a_way_around(mara, bob, request_):
    Avatar.objects.create(handle="bobby", owner=bob)

    with pytest.raises(InvalidRender):
        by_door(bob, request_)


def test_another_accounts_avatar_of_the_same_name_is_another(mara, ann, settings):
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": {"API_KEY": "sk-acme"}}}

    with pytest.raises(InvalidRender):
        by_door(ann, {**SPEAKS, "workspace": "acme"})


def test_a_form_says_so_at_its_field_and_a_list_at_its_line(mara, bob):
    form = RenderForm(
        {
            "kind": "avatar_video",
            "prompt": "Hello!",
            "params": '{"avatar_handle": "@mara"}',
            "token": "t" * 20,
        },
        user=bob,
    )
    assert "neither yours nor released" in str(form.errors)

    text = f"{json.dumps({'prompt': 'a fox'})}\n{json.dumps(SPEAKS)}"
    [fault] = drafts.check(text, Layout.JSON_LINES, {}, bob).faults
    assert (fault.line, fault.field) == (2, "avatar_handle")


# --- Whose it is --------------------------------------------------------------------------


def made(user, **fields):
    row = stored(
        Status.COMPLETED,
        kind="avatar",
        params={"avatar_handle": "mara"},
        created_by=user,
        result={"artifacts": []},
        **fields,
    )
    finishing.finish(row.pk, None, SimpleNamespace(acquire=lambda *a: "t", release=lambda *a: None))
    return row


def test_an_avatar_that_is_made_is_its_makers(ann, bob, monkeypatch):
    made(ann)
    made(bob)  # who comes second does not take it over

    [avatar] = Avatar.objects.all()
    assert (avatar.handle, avatar.owner, avatar.released) == ("mara", ann, False)


def test_one_that_failed_is_nobodys(ann):
    row = stored(Status.FAILED, kind="avatar", params={"avatar_handle": "mara"}, created_by=ann)
    finishing._handle(row)

    assert not Avatar.objects.exists()


@pytest.mark.parametrize("handle", ["m" * 150, ["x"], 5, None])
def test_an_odd_handle_of_an_older_release_strands_no_render(ann, handle):
    row = stored(
        Status.COMPLETED,
        kind="avatar",
        params={"avatar_handle": handle},
        created_by=ann,
        result={"artifacts": []},
    )
    finishing._handle(row)

    row.refresh_from_db()
    assert row.handled_at and not Avatar.objects.exists()


def test_with_a_persons_data_the_right_to_the_face_goes(mara, ann, bob):
    erasing.erase(ann)

    assert not Avatar.objects.exists()
    with pytest.raises(InvalidRender):
        by_door(bob)


# --- What is offered ----------------------------------------------------------------------


class Sume:
    def __init__(self, answer):
        self.answer = answer
        self.asked = 0

    def __call__(self, account):
        return self

    def ready_avatars(self, limit):
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_each_person_is_offered_what_is_ready_and_theirs(mara, ann, bob, sam):
    Avatar.objects.create(handle="otto", owner=bob)
    Avatar.objects.create(handle="rosa", owner=None, released=True)
    sume = Sume(["mara", "rosa", "zoe"])

    assert avatars.choices(ann, sume) == ["mara", "rosa"]
    assert avatars.choices(bob, sume) == ["rosa"]
    assert avatars.choices(sam, sume) == ["mara", "rosa", "zoe"]
    assert sume.asked == 1


def test_where_the_list_cannot_be_had_the_known_ones_are_offered_and_sume_has_its_peace(mara, ann):
    sume = Sume(OutcomeUnknown("No answer.", code="no_answer"))

    assert [avatars.choices(ann, sume) for _ in range(3)] == [["mara"]] * 3
    assert sume.asked == 1


def test_the_list_is_asked_for_again_after_a_minute(ann, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(avatars.time, "monotonic", lambda: clock[0])
    sume = Sume([])
    for wait in (0, 59, 2):
        clock[0] += wait
        avatars.choices(ann, sume)

    assert sume.asked == 2


def test_a_render_is_finished_with_its_avatar_or_not_at_all(ann, monkeypatch):
    def fail(render):
        raise RuntimeError("no room")

    row = stored(
        Status.COMPLETED,
        kind="avatar",
        params={"avatar_handle": "mara"},
        created_by=ann,
        next_poll_at=timezone.now(),
        result={"artifacts": []},
    )
    monkeypatch.setattr("renders.lifecycle.finishing.note_avatar", fail)
    with pytest.raises(RuntimeError):
        finishing._handle(row)

    row.refresh_from_db()
    assert row.handled_at is None
