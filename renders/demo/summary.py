"""What became of each render, in words for a person. Shows no URL: it may be signed."""

from pathlib import Path

from django.core.files.storage import default_storage

from renders.demo.terminal import one_line
from renders.models import RenderJob
from renders.states import Status


def where_it_is(render: RenderJob) -> str:
    """The saved files' paths, else the render's own page in the app."""
    files = [artifact["file"] for artifact in render.artifacts if artifact.get("file")]
    return ", ".join(_path(name) for name in files) or render.get_absolute_url()


def outcome(render: RenderJob) -> str:
    """Where the picture is, or why there is none."""
    if render.status == Status.COMPLETED:
        return where_it_is(render)
    words = [render.error_code, one_line(render.error_message)]
    told = ": ".join(dict.fromkeys(word for word in words if word))
    return told or render.get_absolute_url()


def total_cost(renders: list[RenderJob]) -> str:
    """The sum of the costs that are known."""
    known = [r.cost_usd_micros for r in renders if r.cost_usd_micros is not None]
    if not known:
        return "Cost: not stated"
    text = f"Cost: ${sum(known) / 1_000_000:.4f}"
    unknown = len(renders) - len(known)
    return f"{text} (not stated for {unknown} of {len(renders)})" if unknown else text


def _path(name: str) -> str:
    try:
        path = Path(default_storage.path(name))
    except NotImplementedError:  # a storage that is not a folder
        return name
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
