"""A render's title: its prompt, or the source of an avatar."""

from typing import Any

from django.db.models import QuerySet
from django.db.models.fields.json import KT
from django.db.models.functions import Left

from renders.models import RenderJob


def title_of(render: Any) -> str:
    """The prompt, or its opening if only that was read; never empty."""
    if render.erased_at:
        return "Erased"
    read = hasattr(render, "opening")
    if words := render.opening if read else render.prompt:
        return str(words)
    handle = render.handle if read else render.params.get("avatar_handle")
    photo = render.photo if read else render.params.get("image_url")
    source = "from a photo" if photo else "from ethnicity, sex and age"
    return f"@{handle}, {source}" if handle else str(render.get_kind_display())


def with_openings(rows: QuerySet[RenderJob], length: int) -> Any:
    """The rows with what `title_of` needs, without reading whole prompts and params."""
    return rows.defer("prompt", "params").annotate(
        opening=Left("prompt", length),
        handle=KT("params__avatar_handle"),
        photo=KT("params__image_url"),
    )
