from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpResponseBadRequest
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from renders.exceptions import InvalidRender
from renders.services import create_render

from .models import Order


@require_POST
@login_required
def buy(request):
    try:
        with transaction.atomic():  # rolled back: nothing is sent, nothing is billed
            order = Order.objects.create(buyer=request.user, wish=request.POST["wish"])
            order.render = create_render(
                order.wish, user=request.user, reference=f"order-{order.pk}"
            )
            order.save()
    except InvalidRender as error:
        return HttpResponseBadRequest(str(error))
    return redirect(order.render)
