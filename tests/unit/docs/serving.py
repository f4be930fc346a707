"""Runs a page's shell commands while this process is the site that they talk to."""

import subprocess
import tempfile
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from django.core.handlers.wsgi import WSGIHandler

SITE = "http://127.0.0.1:8000"


class _Quiet(WSGIRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def run(script: str) -> str:
    """What the commands printed; `SITE` in them is this process. Fails if one of them did.

    Requests are answered by the thread that calls this, on its own database connection.
    """
    with WSGIServer(("127.0.0.1", 0), _Quiet) as server, tempfile.TemporaryFile("w+") as output:
        server.set_app(WSGIHandler())
        server.timeout = 0.02
        script = script.replace(SITE, f"http://127.0.0.1:{server.server_port}")
        with subprocess.Popen(["bash", "-euc", script], stdout=output, stderr=output) as shell:
            while shell.poll() is None:
                server.handle_request()
        output.seek(0)
        text = output.read()
    assert shell.returncode == 0, text
    return text
