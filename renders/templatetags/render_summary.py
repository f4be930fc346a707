"""The summary of all renders, for users who may view them."""

from typing import Any

from django import template

from renders.reports import summary

register = template.Library()


@register.inclusion_tag("renders/admin/summary.html", takes_context=True)
def render_summary(context: Any) -> dict[str, Any]:
    """The summary's figures; empty for a user who may not view renders."""
    user = context["request"].user
    if not user.has_perm("renders.view_renderjob"):
        return {}
    words, well = summary.gate_in_words()
    return {
        "figures": summary.figures(user),
        "gate": words,
        "gate_is_well": well,
        "may_see_gate": user.has_perm("renders.view_gate") or user.has_perm("renders.change_gate"),
    }
