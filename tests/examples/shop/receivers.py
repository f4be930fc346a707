from functools import partial

from django.core.mail import send_mail
from django.db import transaction
from django.dispatch import receiver
from django.utils import timezone

from renders.models import RenderJob
from renders.signals import render_completed

from .models import Order


@receiver(render_completed, sender=RenderJob)
def deliver(render, **kwargs):
    for order in Order.objects.filter(render=render):
        order.delivered_at = timezone.now()
        order.save()  # exactly once, even if the worker dies in the middle
        transaction.on_commit(
            partial(send_mail, "Your picture", order.wish, None, [order.buyer.email])
        )
