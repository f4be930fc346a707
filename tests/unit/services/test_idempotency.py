"""What is the same request, and how long it is remembered."""

from datetime import timedelta

import pytest
from django.utils import timezone

from renders.housekeeping.pruning import prune
from renders.models import ApiRequest
from renders.sume.bodies import canonical


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1.0}, {"a": 1}, True),
        ({"a": [1e2, {"b": -0.0}]}, {"a": [100, {"b": 0}]}, True),
        ([1, 2], (1, 2), True),
        ({"a": True}, {"a": 1}, False),
        ({"a": None}, {}, False),
        ([1, 2], [2, 1], False),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": 0.1}, {"a": 0.2}, False),
    ],
)
def test_what_means_the_same_is_written_the_same(one, other, same):
    assert (canonical(one) == canonical(other)) is same


@pytest.mark.django_db
def test_old_keys_are_forgotten_batch_by_batch(django_user_model, settings):
    settings.RENDERS = {**settings.RENDERS, "IDEMPOTENCY_HOURS": 24, "SWEEP_BATCH": 2}
    user = django_user_model.objects.create_user("ann")
    now = timezone.now()
    for key, hours in [("new", 23), ("old", 25), ("older", 26), ("oldest", 27)]:
        made = now - timedelta(hours=hours)
        ApiRequest.objects.create(user=user, key=key, created_at=made)

    def keys():
        return set(ApiRequest.objects.values_list("key", flat=True))

    prune()
    assert keys() == {"new", "old"}
    prune()
    assert keys() == {"new"}

    ApiRequest.objects.update(created_at=now - timedelta(days=9999))
    settings.RENDERS["IDEMPOTENCY_HOURS"] = 0
    prune()
    assert keys() == {"new"}
