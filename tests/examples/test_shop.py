"""The shop's own tests, as a project would write them with `renders.testing`."""

import pytest
from django.core.files.storage import default_storage

from .shop.models import Order

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.examples.shop.urls")]


@pytest.fixture
def buyer(client, django_user_model):
    buyer = django_user_model.objects.create_user("ann", "ann@example.com")
    client.force_login(buyer)
    return buyer


def test_an_order_is_delivered_with_a_mail(client, buyer, sume, mailoutbox):
    client.post("/buy/", {"wish": "A red boat"})
    order = Order.objects.get()

    render = sume.run_to_end(order.render)

    order.refresh_from_db()
    assert order.delivered_at
    assert default_storage.exists(render.artifacts[0]["file"])
    assert [mail.to for mail in mailoutbox] == [["ann@example.com"]]
    assert len(sume.bills) == 1


def test_an_order_without_a_picture_stays_open(client, buyer, sume, mailoutbox):
    sume.next_fails("content_policy_rejected")
    client.post("/buy/", {"wish": "A red boat"})
    order = Order.objects.get()

    render = sume.run_to_end(order.render)

    assert (render.status, render.error_code) == ("failed", "content_policy_rejected")
    assert len(sume.bills) == len(sume.refunds) == 1
    assert not Order.objects.get().delivered_at
    assert not mailoutbox


def test_a_wish_that_cannot_be_rendered_makes_no_order(client, buyer, sume):
    reply = client.post("/buy/", {"wish": " "})

    assert reply.status_code == 400
    assert not Order.objects.exists()
    assert sume.run_all_to_end() == []
