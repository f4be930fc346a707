"""What is done with selected renders. Each asks the services and reports what they answered."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from renders import services
from renders.exceptions import InvalidRender
from renders.models import RenderJob


class RenderActions(admin.ModelAdmin):
    """The actions of the list of renders, and who may use them."""

    actions = ["cancel", "retry"]

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Canceling is a permission of its own."""
        return request.user.has_perm("renders.cancel_renderjob")

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """So is retrying: it is billed anew."""
        return request.user.has_perm("renders.retry_renderjob")

    @admin.action(description="Cancel the selected renders", permissions=["cancel"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[RenderJob]) -> None:
        """Sume decides, so this reports what was asked and no more."""
        renders = list(queryset)
        asked = sum(services.cancel_render(render) for render in renders)
        if asked:
            self.message_user(request, f"Cancel requested for {asked}.", messages.SUCCESS)
        if asked < len(renders):
            text = f"{len(renders) - asked} left alone: ended, or cancel requested before."
            self.message_user(request, text)

    @admin.action(description="Retry as new renders (billed anew)", permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[RenderJob]) -> None:
        """Each at most once, however often this is clicked."""
        made = known = refused = 0
        for render in list(queryset):
            try:
                new, is_new = services.retry_once(render, request.user)
            except InvalidRender:
                refused += 1
                continue
            if is_new:
                made += 1
                self.log_addition(request, new, f"Retry of {render.pk}")
            else:
                known += 1
        for number, text, level in [
            (made, "{} retried as new.", messages.SUCCESS),
            (known, "{} left alone: retried before.", messages.INFO),
            (refused, "{} left alone: only failed or canceled renders are retried.", messages.INFO),
        ]:
            if number:
                self.message_user(request, text.format(number), level)
