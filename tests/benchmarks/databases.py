"""A PostgreSQL of one's own, with as many renders as are wanted."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tests.benchmarks.filling import Filling, fill
from tests.servers import postgresql

NAME = "renders_benchmark"


@contextmanager
def filled(filling: Filling) -> Iterator[str]:
    """The address of a database with these renders; it is dropped afterwards."""
    with postgresql() as server, psycopg.connect(f"{server}/postgres", autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
        admin.execute(f"CREATE DATABASE {NAME}")
        url = f"{server}/{NAME}"
        environment = {**os.environ, "DATABASE_URL": url}
        command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(command, check=True, env=environment)
        fill(url, filling)
        yield url
        admin.execute(f"DROP DATABASE {NAME} WITH (FORCE)")
