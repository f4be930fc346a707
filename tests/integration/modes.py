"""The stack in each of its modes: the settings of this process and of those it starts."""

import psycopg
from django.conf import settings
from django.db import connection

from renders.demo.processes import Child
from renders.models import RenderJob
from tests.integration.stack import Stack

# Nobody listens here.
NOWHERE = "redis://127.0.0.1:9/0"


def use(stack: Stack, scheduler: str, *, ticks: int = 0) -> None:
    """Have this process, and those that are started from now on, work that way."""
    url = NOWHERE if scheduler == "database" else stack.redis.url
    stack.environment |= {
        "RENDERS_SCHEDULER": scheduler,
        "RENDERS_TICKS": str(ticks),
        "TESTS_REDIS_URL": url,
        "CELERY_BROKER_URL": url,
    }
    own = {"SCHEDULER": scheduler, "TICKS": ticks, "REDIS_URL": url}
    settings.RENDERS = {**settings.RENDERS, **own}


def start(stack: Stack, command: str, number: int = 0) -> Child:
    """Start `pollrenders` or `runrenders` and return once it is at work."""
    child = stack.run(f"{command}{number}", "manage.py", command)
    stack.until(lambda: child.has_written("Ctrl-C ends it."), child=child)
    return child


def end(stack: Stack, child: Child) -> None:
    """SIGTERM, and wait; it must end well."""
    child.process.terminate()
    stack.until(lambda: not child.alive)
    assert child.process.returncode == 0, child.output()


def status_reads(stack: Stack, render: RenderJob) -> list[float]:
    """When Sume was asked for this render's status."""
    render.refresh_from_db()
    reads = stack.sandbox.ledger.reads.get(render.sume_job_id, [])
    return [read.at for read in reads if read.what == "status"]


def assert_each_read_was_recorded(stack: Stack) -> None:
    """No read was made twice, so that one of the two could only be thrown away."""
    for render in RenderJob.objects.all():
        assert len(status_reads(stack, render)) == render.poll_count, stack.report()


class DatabaseAway:
    """PostgreSQL lets nobody into this database; who is in, is thrown out."""

    def __enter__(self) -> "DatabaseAway":
        url = connection.settings_dict
        self._name = url["NAME"]
        self._server = f"postgresql://{url['USER']}@{url['HOST']}:{url['PORT']}/postgres"
        connection.close()
        self._allow(False)
        return self

    def __exit__(self, *error: object) -> None:
        self._allow(True)

    def _allow(self, allowed: bool) -> None:
        with psycopg.connect(self._server, autocommit=True) as server:
            server.execute(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS {allowed}")  # type: ignore[arg-type]
            if not allowed:
                server.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                    [self._name],
                )
