"""A reference belongs to those who gave it, and its render has the same key each time."""

import uuid

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import CommandError, call_command
from django.db import IntegrityError

from renders import services, transitions
from renders.exceptions import InvalidRender, ReferenceTaken
from renders.models import Installation, RenderJob
from renders.services import bulk
from renders.services.references import door, installation_id
from renders.states import CODE, UNSCOPED, Status
from tests.rows import stored

pytestmark = pytest.mark.django_db
FOX = {"prompt": "a fox", "reference": "order-1"}


@pytest.fixture(autouse=True)
def nothing_sent(followed):
    return followed


def by_door(user, **changes):
    [(render, is_new)] = services.create([{**FOX, **changes}], user, door(user))
    return render, is_new


# --- Whose it is --------------------------------------------------------------------------


def test_what_strangers_name_is_no_render_of_the_sites_own_code(ann, bob):
    theirs, _ = by_door(bob)

    hers = services.create_render(**FOX, user=ann)

    assert hers != theirs
    assert (hers.created_by, hers.reference_scope) == (ann, CODE)


def test_what_code_names_is_not_given_to_a_user_who_names_the_same(ann):
    hers = services.create_render(**FOX, user=ann)

    assert by_door(ann) == (RenderJob.objects.exclude(pk=hers.pk).get(), True)


def test_two_users_have_each_their_own(ann, bob):
    assert by_door(ann)[1] and by_door(bob)[1]
    assert not by_door(ann)[1]


def test_deleting_a_user_merges_nothing(ann, bob):
    theirs = [by_door(ann)[0], by_door(bob)[0]]
    ann.delete()
    bob.delete()

    nobodys = services.create_render(**FOX)

    assert nobodys not in theirs
    assert RenderJob.objects.filter(created_by=None, reference="order-1").count() == 3


def test_the_database_keeps_a_reference_unique_in_its_scope(ann):
    stored(Status.PENDING, reference="order-1", reference_scope=door(ann))
    stored(Status.PENDING, reference="order-1")

    with pytest.raises(IntegrityError, match=r"renders_reference_of_scope|reference_scope"):
        stored(Status.PENDING, reference="order-1")


# --- What another request is --------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [{"prompt": "a hen"}, {"kind": "video"}, {"params": {"seed": 8}}, {"model": "sume/other"}],
    ids=str,
)
def test_another_request_is_refused_and_stores_nothing(change):
    request = {**FOX, "params": {"seed": 7}}
    services.create_render(**request)

    with pytest.raises(ReferenceTaken, match="Another render has this reference") as refused:
        services.create_renders([{"prompt": "a cow"}, {**request, **change}])

    assert isinstance(refused.value, InvalidRender)
    assert (refused.value.field, refused.value.index) == ("reference", 1)
    assert RenderJob.objects.count() == 1


def test_another_user_of_the_sites_own_code_is_refused(ann, bob):
    services.create_render(**FOX, user=ann)

    for user in (bob, None):
        with pytest.raises(ReferenceTaken):
            services.create_render(**FOX, user=user)


def test_a_model_is_not_compared_where_the_kind_has_none():
    avatar = {**FOX, "kind": "avatar", "params": {"avatar_handle": "mara"}}
    row = stored(Status.PENDING, **avatar, model="sume/auto")  # as an older release stored it

    assert services.create_render(**avatar) == row


def test_a_user_whose_id_is_given_as_text_is_the_same_user(ann):
    first = services.create_render(**FOX, user=ann)
    ann.pk = str(ann.pk)

    assert services.create_render(**FOX, user=ann) == first


def test_blanks_around_a_long_reference_are_no_part_of_it():
    name = "x" * 200

    assert services.create_render("a fox", reference=name) == services.create_render(
        "a fox", reference=f" {name} "
    )


def test_another_place_in_line_is_the_same_request():
    assert services.create_render(**FOX, priority=3) == services.create_render(**FOX)


def test_a_workspace_is_compared_where_it_is_named(settings):
    settings.RENDERS = {**settings.RENDERS, "WORKSPACES": {"acme": {"API_KEY": "sk-acme"}}}
    first = services.create_render(**FOX, workspace="acme")

    assert services.create_render(**FOX) == first  # the user's own may be another by now
    with pytest.raises(ReferenceTaken):
        services.create_render(**FOX, workspace="default")


def test_an_erased_render_is_returned_as_it_is(ann):
    row = stored(Status.COMPLETED, reference="order-1", created_by=ann, prompt="")
    RenderJob.objects.filter(pk=row.pk).update(erased_at=row.created_at)

    assert services.create_render(**FOX) == row


def test_one_reference_with_two_requests_in_one_call_is_refused():
    with pytest.raises(ReferenceTaken):
        services.create_renders([FOX, {**FOX, "prompt": "a hen"}])
    assert not RenderJob.objects.exists()


def test_the_command_refuses_it_as_wrong_usage():
    services.create_render(**FOX)

    with pytest.raises(CommandError, match="Another render has this reference") as error:
        call_command("render", "a hen", "--reference", "order-1", "--no-follow")
    assert error.value.returncode == 2


def test_the_page_shows_the_refusal_at_its_field(client, ann):
    by_door(ann)
    client.force_login(ann)
    token = client.get("/renders/new/").context["form"]["token"].value()

    page = client.post(
        "/renders/new/",
        {"kind": "image", "prompt": "a hen", "reference": "order-1", "token": token},
    )

    assert "Another render has this reference" in page.content.decode()
    assert RenderJob.objects.count() == 1


def test_the_admin_shows_the_refusal_and_notes_no_addition(client, admin_user):
    by_door(admin_user)
    client.force_login(admin_user)
    add = "/admin/renders/renderjob/add/"
    form = client.get(add).context["adminform"].form
    data = {name: form[name].value() for name in ("token", "model", "priority")}

    page = client.post(
        add, {**data, "kind": "image", "prompt": "a hen", "params": "{}", "reference": "order-1"}
    )

    assert "Another render has this reference" in page.content.decode()
    assert not LogEntry.objects.exists()


# --- Rows from before there were scopes ---------------------------------------------------


def test_code_knows_a_row_that_has_no_scope():
    row = stored(Status.COMPLETED, reference="order-1", reference_scope=UNSCOPED, prompt="a fox")

    assert services.create_render(**FOX) == row
    with pytest.raises(ReferenceTaken):
        services.create_render("a hen", reference="order-1")


def test_a_user_knows_only_ones_own_row_without_a_scope(ann, bob):
    row = stored(
        Status.COMPLETED,
        reference="order-1",
        reference_scope=UNSCOPED,
        prompt="a fox",
        created_by=ann,
    )

    assert by_door(ann) == (row, False)
    assert by_door(bob)[1]


def test_the_scopes_own_row_counts_where_both_have_the_reference():
    stored(Status.COMPLETED, reference="order-1", reference_scope=UNSCOPED, prompt="a hen")
    row = stored(Status.COMPLETED, reference="order-1", prompt="a fox")

    assert services.create_render(**FOX) == row


# --- The key ------------------------------------------------------------------------------


def test_a_reference_has_the_same_key_after_its_row_is_gone():
    first = services.create_render(**FOX)
    RenderJob.objects.all().delete()

    again = services.create_render(**FOX)

    assert again.idempotency_key == first.idempotency_key == f"render-job-{first.pk}"


def test_a_retry_has_the_same_key_after_its_row_is_gone():
    original = stored(Status.FAILED)
    first = services.retry_render(original)
    RenderJob.objects.filter(pk=first.pk).delete()

    assert services.retry_render(original).pk == first.pk != original.pk


def test_a_retry_of_an_original_that_was_deleted_by_hand_and_made_again_is_the_first_one(followed):
    for number in range(2):
        original = services.create_render(**FOX)
        other = services.create_render("a hen")
        for row in (original, other):
            transitions.cancel_unsent(row.pk, row.created_at)
        if number == 0:
            first = services.retry_render(original)
            RenderJob.objects.filter(pk=original.pk).delete()

    assert bulk.retry_renders(RenderJob.objects.filter(pk__in=[original.pk, other.pk]), None)
    assert services.retry_once(original, None) == (first, False)
    assert original.retries.get() == first
    assert other.retries.count() == 1


def test_keys_differ_by_reference_scope_and_installation(ann, bob, settings):
    rows = [
        services.create_render(**FOX),
        services.create_render("a fox", reference="order-2"),
        by_door(ann)[0],
        by_door(bob)[0],
    ]
    original = stored(Status.FAILED)
    rows.append(services.retry_render(original))
    RenderJob.objects.exclude(pk=original.pk).delete()
    settings.RENDERS = {**settings.RENDERS, "INSTALLATION_ID": str(uuid.uuid4())}
    rows += [services.create_render(**FOX), by_door(ann)[0], services.retry_render(original)]

    assert len({row.pk for row in rows}) == len(rows)


def test_the_installation_has_one_id_that_stays():
    kept = installation_id()
    services.create_render(**FOX)

    assert Installation.objects.get().uuid == kept


def test_a_flushed_database_gets_an_id_again():
    Installation.objects.all().delete()

    services.create_render(**FOX)

    assert Installation.objects.count() == 1


def test_without_a_reference_each_render_has_a_key_of_its_own():
    assert services.create_render("a fox").pk != services.create_render("a fox").pk
