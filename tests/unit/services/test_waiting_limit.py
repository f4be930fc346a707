"""How many renders one person may have waiting: counted over all workspaces, for people only."""

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from renders import services
from renders.exceptions import InvalidRender, LineFull, TooManyAtOnce
from renders.models import RenderJob
from renders.services import bulk, permissions
from renders.services.references import door
from renders.states import CODE, Status
from tests.rows import stored

pytestmark = pytest.mark.django_db
LIMIT = 3
FULL = (
    "You have 3 renders waiting, and at most 3 may wait: 1 more does not fit. "
    "Wait until some have been sent, or cancel some."
)


@pytest.fixture(autouse=True)
def limited(settings):
    settings.RENDERS = {**settings.RENDERS, "MAX_WAITING_PER_USER": LIMIT, "WORKSPACES": {"a": {}}}


@pytest.fixture
def full(ann):
    """Ann, with as many renders waiting as she may have."""
    make(ann, LIMIT)
    return ann


def make(user, count, **fields):
    """New renders of this person, through a door."""
    requests = [{"prompt": f"fox {number}", **fields} for number in range(count)]
    return services.create(requests, user, door(user))


def permit(user, codename):
    user.user_permissions.add(Permission.objects.get(codename=codename))
    return type(user).objects.get(pk=user.pk)


# --- What is counted ----------------------------------------------------------------------


def test_one_may_have_as_many_waiting_as_the_limit_and_no_more(full):
    with pytest.raises(LineFull) as caught:
        make(full, 1)

    assert caught.value.message == FULL
    assert RenderJob.objects.count() == LIMIT


def test_what_does_not_fit_as_a_whole_is_not_made_at_all(ann):
    make(ann, 1)
    with pytest.raises(LineFull) as caught:
        make(ann, 3)

    assert caught.value.message == (
        "You have 1 render waiting, and at most 3 may wait: 3 more do not fit. "
        "Wait until some have been sent, or cancel some."
    )
    assert RenderJob.objects.count() == 1


def test_more_than_the_limit_at_once_never_fit(ann):
    with pytest.raises(TooManyAtOnce) as caught:
        make(ann, 4)

    assert caught.value.message == (
        "These are 4 new renders, and you may have at most 3 waiting. Ask for fewer at once."
    )
    assert not isinstance(caught.value, LineFull)
    assert not RenderJob.objects.exists()


def test_it_counts_what_waits_in_all_workspaces(ann):
    stored(created_by=ann, workspace="a")
    stored(created_by=ann, workspace="removed since")
    make(ann, 1)

    with pytest.raises(LineFull):
        make(ann, 1)


@pytest.mark.parametrize("status", sorted({*Status} - {Status.PENDING}))
def test_it_does_not_count_what_was_sent_or_has_ended(ann, status):
    for _ in range(LIMIT):
        stored(status, created_by=ann)

    assert make(ann, LIMIT)


def test_it_does_not_count_what_is_held_or_belongs_to_others(ann, django_user_model):
    bob = django_user_model.objects.create_user("bob")
    for _ in range(LIMIT):
        stored(created_by=ann, held_at=timezone.now())
        stored(created_by=bob)
        stored()

    assert make(ann, LIMIT)


def test_what_the_sites_code_made_for_a_person_counts_but_is_not_limited(ann):
    requests = [{"prompt": "a fox"}] * 5
    services.create_renders(requests, user=ann)
    services.create(requests, ann, CODE)

    assert RenderJob.objects.count() == 10
    with pytest.raises(LineFull):
        make(ann, 1)


# --- Who is limited -----------------------------------------------------------------------


def test_zero_is_no_limit(full, settings):
    settings.RENDERS = {**settings.RENDERS, "MAX_WAITING_PER_USER": 0}

    assert make(full, 10)


def test_staff_and_those_with_the_permission_have_no_limit(ann, django_user_model):
    sam = django_user_model.objects.create_user("sam", is_staff=True)

    assert len(make(sam, 5)) == 5
    assert len(make(permit(ann, "exceed_waiting_limit"), 5)) == 5


def test_without_a_limit_nothing_is_counted(ann, settings, django_assert_num_queries):
    settings.RENDERS = {**settings.RENDERS, "MAX_WAITING_PER_USER": 0}

    with django_assert_num_queries(0):
        permissions.check(ann, 5)


# --- What was asked for before ------------------------------------------------------------


def test_a_known_reference_passes_when_the_line_is_full(ann):
    [(render, _)] = make(ann, 1, reference="order-1")
    make(ann, 2)

    assert make(ann, 1, reference="order-1") == [(render, False)]


def test_known_references_in_a_list_do_not_count(ann):
    known = [{"prompt": "a fox", "reference": f"order-{number}"} for number in range(2)]
    services.create(known, ann, door(ann))

    again = services.create([*known, {"prompt": "a hen"}], ann, door(ann))

    assert [is_new for _render, is_new in again] == [False, False, True]


def test_what_is_wrong_is_said_before_what_has_to_wait(full):
    with pytest.raises(InvalidRender) as caught:
        make(full, 1, priority=1)

    assert caught.value.field == "priority"


# --- Retries ------------------------------------------------------------------------------


def test_a_retry_counts(full):
    original = stored(Status.FAILED, created_by=full)
    with pytest.raises(LineFull, match="You have 3 renders waiting"):
        services.retry_render(original, user=full)
    assert not original.retries.exists()

    services.cancel_render(RenderJob.objects.pending().first())
    assert services.retry_render(original, user=full).created_by == full


def test_a_retry_that_was_made_before_is_found_when_the_line_is_full(ann):
    original = stored(Status.FAILED, created_by=ann)
    retry = services.retry_render(original, user=ann)
    make(ann, 2)

    assert services.retry_once(original, ann) == (retry, False)


def test_a_retry_by_the_sites_code_or_by_staff_is_not_limited(full, django_user_model):
    sam = django_user_model.objects.create_user("sam", is_staff=True)

    for user in (None, sam):
        retry = services.retry_render(stored(Status.FAILED, created_by=full), user=user)
        assert retry.created_by == full


def test_many_retries_that_do_not_fit_are_left_and_the_words_say_why(full):
    for _ in range(2):
        stored(Status.FAILED, created_by=full)

    tally = bulk.retry_renders(RenderJob.objects.all(), full)

    assert (tally.done, tally.unreached) == (0, 2)
    assert tally.refused == FULL.replace("1 more does", "2 more do")
    assert bulk.retry_renders(RenderJob.objects.all(), None).done == 2
