"""Flower's configuration: closed, on this machine only, with a link to each task's render.

Flower runs this file (`FLOWER_CONF`, see celery.py) after it has read its environment and its
command line, and takes the names that are options of its own.
"""

import json
import re
import secrets
from pathlib import Path
from typing import Any

from django.urls import reverse
from flower.urls import settings as flower_settings
from tornado.options import options
from tornado.template import Loader, Template

from renders.conf import conf as renders_conf

NOT_KEPT = "not kept"  # a poll's or a sweep's: there are too many
# As on a phone, so that a line fits on a screen.
SHORT_IDS = (
    "<style>.tasks-table .task-uuid-full { display: none }"
    ".tasks-table .task-uuid-short { display: inline }</style>"
)
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

known = [pair for pair in options.basic_auth or [] if re.fullmatch("[^:]+:.+", pair)]
if not options.auth and (not known or known != options.basic_auth):
    raise SystemExit(
        "Flower shows and stops all tasks, so it does not start without a password: name:password, "
        "without a comma. For instance:\n"
        f"  FLOWER_BASIC_AUTH=admin:{secrets.token_urlsafe(12)} celery -A project flower"
    )

# With a password, too: /metrics and /healthcheck ask for none.
address = options.address or "127.0.0.1"
tasks_columns = "name,args,state,result,received,runtime,uuid,worker"


def format_task(task: Any) -> Any:
    """Show the render that a task is about instead of its arguments, and its result in words."""
    if not (task.name or "").startswith("renders."):
        return task
    if found := UUID.search(str(task.args or "")):
        site = renders_conf.PUBLIC_URL
        task.args = site + reverse("renders:detail", args=[found[0]]) if site else found[0]
    if task.result:
        task.result = NOT_KEPT if task.result == "None" else task.result.strip("'")
    return task


class Pages(Loader):
    """Flower's own pages, and one script more: they escape all that `format_task` gives."""

    def _create_template(self, name: str) -> Template:
        page = Path(self.root, name).read_text("utf-8")
        site = json.dumps(f"{renders_conf.PUBLIC_URL}/").replace("<", "\\u003c")
        script = Path(__file__).with_suffix(".js").read_text("utf-8").replace("SITE", site)
        page = page.replace("</body>", f"{SHORT_IDS}<script>{script}</script></body>")
        return Template(page, name=name, loader=self)


if renders_conf.PUBLIC_URL:
    flower_settings["template_loader"] = Pages(flower_settings["template_path"])
