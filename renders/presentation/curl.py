"""A render as a `curl` command for this app's API."""

import json
import shlex
from typing import Any

from renders.conf import workspaces
from renders.models import RenderJob


def curl(render: RenderJob, url: str) -> str:
    """The command that requests the same render again; the token comes from the environment.

    The reference is left out, since it would return the existing render. The command's
    Idempotency-Key is fixed, so pasting it several times makes only one render.
    """
    body: dict[str, Any] = {"prompt": render.prompt, "kind": render.kind}
    body |= {"model": render.model} if render.model else {}
    body |= {"params": render.params} if render.params else {}
    body |= {"priority": render.priority} if render.priority else {}
    body |= {"workspace": render.workspace} if workspaces.several() else {}
    text = json.dumps(body, ensure_ascii=False)
    # Characters that a terminal does not show as they are become JSON escapes.
    text = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    return " \\\n  ".join(
        [
            f"curl -X POST {shlex.quote(url)}",
            '-H "Authorization: Bearer $RENDERS_TOKEN"',
            "-H 'Content-Type: application/json'",
            f"-H 'Idempotency-Key: again-{render.pk}'",
            f"--data-binary {shlex.quote(text)}",
        ]
    )
