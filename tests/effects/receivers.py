"""A receiver whose behaviour a prompt chooses, until the file `EFFECTS_MARKER` exists.

`[slow]` takes its time with the effect written and not committed; `[raise]` fails. `[pause]`
always waits for a second there.
"""

import os
import time
from pathlib import Path
from typing import Any

from django.dispatch import receiver

from renders import signals
from renders.models import RenderJob
from tests.effects.models import Effect


@receiver([signals.render_completed, signals.render_failed, signals.render_canceled])
def count_effect(sender: type[RenderJob], render: RenderJob, **kwargs: Any) -> None:
    Effect.objects.create(render_id=render.pk, signal=render.status)
    marker = Path(os.environ.get("EFFECTS_MARKER", "nowhere"))
    if "[slow]" in render.prompt and not marker.exists():
        # A test kills this process here.
        marker.write_text(str(os.getpid()))
        time.sleep(60)
    if "[pause]" in render.prompt:
        time.sleep(1)
    if "[raise]" in render.prompt and not marker.exists():
        raise RuntimeError("this receiver fails")


@receiver(signals.render_media_stored)
def count_media(sender: type[RenderJob], render: RenderJob, **kwargs: Any) -> None:
    Effect.objects.create(render_id=render.pk, signal="media stored")
