"""The fields of a render in the admin: columns of the list, and facts on its page."""

from typing import Any

from django.contrib import admin
from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from renders.conf import workspaces
from renders.models import RenderJob
from renders.presentation.media_links import media
from renders.presentation.titles import title_of
from renders.reports.attention import Reason
from renders.templatetags import render_facts as facts


class RenderColumns(admin.ModelAdmin):
    """The columns of the list and the facts of the page."""

    @admin.display(description="Preview")
    def thumbnail(self, render: RenderJob) -> SafeString:
        """A small picture of fixed size, or the kind of the render if there is none."""
        small = next((item.thumbnail for item in media(render) if item.thumbnail), "")
        if not small:
            return format_html(
                '<span class="renders-thumbnail">{}</span>', render.get_kind_display()
            )
        return format_html(
            '<img class="renders-thumbnail" loading="lazy" width="64" height="48" '
            'src="{}" alt="{}">',
            small,
            self.short_prompt(render),
        )

    @admin.display(description="Status", ordering="status")
    def badge(self, render: Any) -> SafeString:
        """The status, a cancel request, and why the render needs attention."""
        return format_html_join(" ", '<span class="badge badge-{}">{}</span>', self._badges(render))

    @admin.display(description="Status", ordering="status")
    def badge_and_kind(self, render: Any) -> SafeString:
        """The badges, with the kind beneath, and the workspace if there are several."""
        words = [render.get_kind_display(), *([render.workspace] if workspaces.several() else [])]
        return format_html(
            '{}<span class="renders-kind">{}</span>', self.badge(render), ", ".join(words)
        )

    def _badges(self, render: Any) -> list[tuple[str, str]]:
        badges = [(render.status, render.get_status_display())]
        if render.held_at:
            badges.append(("canceled", "Held"))
        elif render.awaits_budget:
            badges.append(("canceled", "Waits for the budget"))
        if render.cancel_requested_at and not render.is_terminal:
            badges.append(("canceled", "Cancel requested"))
        if render.attention:
            badges.append(("attention", Reason(render.attention).label))
        return badges

    @admin.display(description="Prompt")
    def short_prompt(self, render: RenderJob) -> str:
        return Truncator(title_of(render)).chars(80)

    @admin.display(description="Added", ordering="created_at")
    def added(self, render: RenderJob) -> SafeString:
        """How long ago, and by which user, linked to all renders of that user."""
        moment = render.created_at
        who: Any = "a program"
        if render.created_by_id:
            who = format_html('<a href="?who={}">{}</a>', render.created_by_id, render.created_by)
        return format_html(
            '<time datetime="{}" title="{}">{} ago</time><span class="renders-who">by {}</span>',
            moment.isoformat(),
            f"{moment:%F %T %Z}",
            facts.age(moment),
            who,
        )

    @admin.display(description="Time", ordering="finished_at")
    def times(self, render: RenderJob) -> SafeString:
        """The time until Sume accepted the render, and its time at Sume."""
        waited = format_html("{} wait", facts.waited(render))
        if render.submitted_at is None:
            return waited
        return format_html("{}<br>{} render", waited, facts.rendered(render))

    @admin.display(description="Waited")
    def waited(self, render: RenderJob) -> str:
        return facts.waited(render)

    @admin.display(description="Rendered")
    def rendered(self, render: RenderJob) -> str:
        return facts.rendered(render)

    @admin.display(description="Cost", ordering="cost_usd_micros")
    def cost(self, render: RenderJob) -> str:
        return facts.usd(render.cost_usd_micros)

    @admin.display(description="Now")
    def standing(self, render: RenderJob) -> str:
        return facts.in_words(render)

    @admin.display(description="Result")
    def pictures(self, render: RenderJob) -> str:
        return render_to_string("renders/admin/media.html", {"render": render})

    @admin.display(description="Prompt")
    def whole_prompt(self, render: RenderJob) -> SafeString:
        return format_html('<p class="renders-prompt">{}</p>', title_of(render))

    @admin.display(description="Error")
    def trouble(self, render: RenderJob) -> SafeString:
        # Without further text from Sume, the message is the code.
        repeated = render.error_code in ("", render.error_message)
        code = "" if repeated else format_html("<code>{}</code>", render.error_code)
        return format_html(
            '<div class="renders-trouble"><p>{}</p>{}</div>', render.error_message, code
        )

    @admin.display(description="Params")
    def params_json(self, render: RenderJob) -> SafeString:
        text = facts.pretty_json(render.params) or "{}"
        return format_html('<pre class="renders-json">{}</pre>', text)
