"""Redis is away: nothing is counted, nobody is held up, and the log says so. The limits
themselves are tried with a real Redis, among the integration tests."""

import pytest

from renders.api import throttling
from tests.unit.api.support import problem

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def redis_rests(monkeypatch):
    """It is asked: nothing listens where the settings say."""
    monkeypatch.setattr(throttling._Rest, "until", 0.0)


def test_without_redis_everybody_is_let_in_and_the_log_says_so_once(ann, no_redis, caplog):
    for _ in range(3):
        response = ann.get()
        assert response.status_code == 200
        assert "RateLimit-Limit" not in response.headers
    assert caplog.text.count("Redis unreachable (ConnectionError)") == 1


def test_without_redis_a_wrong_token_is_a_wrong_token(ann, no_redis):
    problem(ann.get(Authorization="Bearer x"), 401)


def test_without_a_limit_nobody_asks_redis(ann, settings, caplog):
    settings.RENDERS = {**settings.RENDERS, "API_REQUESTS_PER_MINUTE": 0}

    assert ann.get().status_code == 200
    assert "Redis" not in caplog.text
