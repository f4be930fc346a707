"""A render as a request to this app's API, to be pasted into a shell."""

import json
import shlex
from typing import Any

from renders.conf import workspaces
from renders.models import RenderJob


def curl(render: RenderJob, url: str) -> str:
    """The command that asks for the same again; the token comes from the environment.

    Without the reference: the same one would give the same render. The key is this page's own:
    however often the command is pasted, it makes one render.
    """
    body: dict[str, Any] = {"prompt": render.prompt, "kind": render.kind}
    body |= {"model": render.model} if render.model else {}
    body |= {"params": render.params} if render.params else {}
    body |= {"priority": render.priority} if render.priority else {}
    body |= {"workspace": render.workspace} if workspaces.several() else {}
    text = json.dumps(body, ensure_ascii=False)
    # Nothing that a terminal would not show as it is.
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
