"""The project's settings as the tests use them: nothing outside this machine, no real key."""

import os
import shutil
import tempfile

from renders.demo.processes import free_port

# The tests make hundreds of databases: where memory is lent out as a disk, these live there.
MEMORY, NEEDED_BYTES = "/dev/shm", 4 * 1024**3  # noqa: S108
if (
    "TMPDIR" not in os.environ
    and os.access(MEMORY, os.W_OK)
    and shutil.disk_usage(MEMORY).free > NEEDED_BYTES
):
    os.environ["TMPDIR"] = tempfile.tempdir = MEMORY

os.environ["DJANGO_ENV_FILE"] = ""  # a developer's own file changes no test
os.environ.setdefault("DJANGO_DEBUG", "1")
os.environ.setdefault("DJANGO_STATE_DIR", tempfile.mkdtemp(prefix="renders-tests-"))
os.environ.setdefault("SUME_API_KEY", "test-key")
# Nothing listens here: a test that reaches for a server it did not start fails at once.
os.environ.setdefault("SUME_BASE_URL", "http://127.0.0.1:9")
# The integration tests start their own Redis here.
# One for each of pytest's processes; what these start, inherits it.
own = "TESTS_REDIS_URL" + os.environ.get("PYTEST_XDIST_WORKER", "")
os.environ["REDIS_URL"] = os.environ.get(own) or f"redis://127.0.0.1:{free_port()}/0"
os.environ[own] = os.environ["REDIS_URL"]

# Short times, so that no test waits longer than it must.
for name, value in {
    "REAP_AFTER_SECONDS": "4",
    "SWEEP_SECONDS": "1",
    "REQUEST_TIMEOUT_SECONDS": "2",
    "LEASE_MARGIN_SECONDS": "0.5",
    "MEDIA_TIMEOUT_SECONDS": "10",
    "MEDIA_PRIVATE_HOSTS": "127.0.0.1",
    "DEFAULT_POLL_SECONDS": "0.5",
    "MIN_POLL_SECONDS": "0.2",
    "MAX_POLL_SECONDS": "5",
    "PAUSE_SECONDS": "0.5",
    # More than any test sends: tests of the limits set their own.
    "WRITES_PER_MINUTE": "100000",
}.items():
    os.environ.setdefault(f"RENDERS_{name}", value)

from project import settings as project_settings  # noqa: E402
from project.settings import *  # noqa: E402, F403

INSTALLED_APPS = [*project_settings.INSTALLED_APPS, "tests.effects", "tests.examples.shop"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
SECRET_KEY = "tests-only"
MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}
# Workers and beat of one test live elsewhere on Earth.
TIME_ZONE = CELERY_TIMEZONE = os.environ.get("TESTS_TIME_ZONE") or project_settings.TIME_ZONE
