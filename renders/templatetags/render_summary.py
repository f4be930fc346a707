"""The summary of all renders, for whoever may see them all."""

from typing import Any

from django import template

from renders.reports import summary

register = template.Library()


@register.inclusion_tag("renders/admin/summary.html", takes_context=True)
def render_summary(context: Any) -> dict[str, Any]:
    """Nothing for a person who may not view renders."""
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
