"""The project's settings as the tests use them: nothing outside this machine, no real key."""

import os
import tempfile

os.environ.setdefault("DJANGO_DEBUG", "1")
os.environ.setdefault("DJANGO_STATE_DIR", tempfile.mkdtemp(prefix="renders-tests-"))
os.environ.setdefault("SUME_API_KEY", "test-key")
# Nothing listens here: a unit test that reaches for a server fails at once.
os.environ.setdefault("SUME_BASE_URL", "http://127.0.0.1:9")
os.environ.setdefault("REDIS_URL", "redis://127.0.0.1:9/0")

from project.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
SECRET_KEY = "tests-only"
