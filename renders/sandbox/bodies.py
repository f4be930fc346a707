"""What the body of each kind's submit may and must hold.

Written from what is known of the API, and never shared with the app: a table that both sides
read would hide exactly the fault that this one is here to catch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .speech import script
from .values import (
    Check,
    Problem,
    ValueShape,
    anything,
    bare,
    handle,
    is_public,
    one_of,
    text,
    typed,
    url,
    whole_number,
)

MODES = ("async", "sync", "subscribe", "webhook")
ETHNICITIES = (
    "Asian",
    "South Asian",
    "Southeast Asian",
    "Black",
    "Hispanic",
    "Middle Eastern",
    "White",
    "Wasian",
)
YOUNGEST, OLDEST = 20, 80

# Which further fields there are depends on the model, so any are taken.
MODEL_RUN = ValueShape(required={"prompt": text}, optional={"model": text}, others=True)
# Fields that every body takes beside its own. Delivery is checked apart: see `problems`.
# `wait_timeout_seconds` is not documented; the public command line client can send it.
DELIVERY: dict[str, Check] = {
    "mode": anything,
    "webhook_url": anything,
    "wait_timeout_seconds": whole_number(0, 30),
}
BODIES = {
    "image": MODEL_RUN,
    "video": MODEL_RUN,
    "avatar": ValueShape(
        required={
            "avatar_handle": handle,
            "input": typed(
                prompt={"prompt": text},
                photo={"image_url": url},
                props={
                    "ethnicity": one_of(*ETHNICITIES),
                    "sex": one_of("male", "female"),
                    "age": whole_number(YOUNGEST, OLDEST),
                },
            ),
        },
        optional=DELIVERY,
    ),
    "avatar_video": ValueShape(
        required={"avatar_handle": handle, "script": script},
        optional={
            "quality": one_of("standard", "plus", "max"),
            "product_image": url,
            "resolution": one_of("720p"),
            "aspect_ratio": text,
            "title": text,
            "scene": typed(prompt={"prompt": text}, photo={"image_url": url}),
            **DELIVERY,
        },
    ),
}
# The path of these names the model; their bodies do not.
MODELS = {"avatar": "sume/avatar/v1.0", "avatar_video": "sume/avatar-video/v1.0"}


@dataclass(frozen=True)
class Wish:
    """What a good body asks for. `text` is drawn, and read for the magic words."""

    model: str
    text: str
    avatar_handle: str = ""
    source_type: str = ""


def problems(kind: str, fields: dict[str, Any]) -> Iterator[Problem]:
    """Everything that is wrong with a body of this kind."""
    yield from BODIES[kind].problems(fields)
    mode = fields.get("mode", "async")
    yield from one_of(*MODES)(mode, "mode")
    if mode == "webhook" and not is_public(fields.get("webhook_url")):
        yield "webhook_url", "Mode webhook needs a public HTTPS URL."


def wish(kind: str, fields: dict[str, Any]) -> Wish:
    """What a body asks for in which `problems` found nothing."""
    if kind not in MODELS:
        return Wish(fields.get("model", "sume/auto"), fields["prompt"])
    name = bare(fields["avatar_handle"])
    if kind == "avatar_video":
        return Wish(MODELS[kind], fields["script"], avatar_handle=name)
    source = fields["input"]
    # A photo and properties have no words of their own: the handle is drawn.
    said = source.get("prompt", f"@{name}")
    return Wish(MODELS[kind], said, avatar_handle=name, source_type=source["type"])
