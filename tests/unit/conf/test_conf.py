"""Settings: every form a value can come in, and errors that show no value."""

import math
import traceback
import uuid
from ipaddress import ip_network

import pytest
from django.core.exceptions import ImproperlyConfigured

from renders.conf import Conf, Setting, conf, parsers, workspaces
from renders.conf.parsers import (
    count,
    days,
    dollars,
    flag,
    hosts,
    hours,
    plan,
    prices,
    redis_address,
    scheduler,
    seconds,
    secret,
    text,
    token,
    web_address,
)

SETTINGS = {name: value for name, value in vars(Conf).items() if isinstance(value, Setting)}
NAMES = sorted(SETTINGS)


def read_by(parse) -> list[str]:
    return [name for name in NAMES if SETTINGS[name].parse is parse]


SECONDS, FLAGS = read_by(seconds), read_by(flag)
DAYS = read_by(days)
COUNTS = [*read_by(count), *DAYS]
TEXTS = [*read_by(text), *read_by(secret), *read_by(redis_address)]
HOURS, PLANS, ADDRESSES = read_by(hours), read_by(plan), read_by(web_address)
INSTALLATIONS, MODELS = read_by(parsers.installation), read_by(parsers.models)
HOSTS, SCHEDULERS, TOKENS = read_by(hosts), read_by(scheduler), read_by(token)
# Those of workspaces and money: see test_workspaces.
ACCOUNTS = [*read_by(dollars), *read_by(prices), *read_by(parsers.workspaces)]


def test_these_tests_know_every_setting():
    words = [*PLANS, *SCHEDULERS, *TOKENS, *ACCOUNTS, *INSTALLATIONS, *MODELS]
    assert sorted([*SECONDS, *COUNTS, *TEXTS, *FLAGS, *HOURS, *words, *ADDRESSES, *HOSTS]) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_setting_that_is_not_given_has_its_default(settings, name):
    settings.RENDERS = {}

    assert getattr(conf, name) == getattr(Conf, name).default


@pytest.mark.parametrize("name", NAMES)
def test_a_project_without_settings_has_the_defaults(settings, name):
    del settings.RENDERS

    assert getattr(conf, name) == getattr(Conf, name).default


@pytest.mark.parametrize("name", NAMES)
def test_a_default_given_as_text_reads_the_same(settings, name):
    default = getattr(Conf, name).default
    settings.RENDERS = {name: str(default)}

    assert getattr(conf, name) == default
    assert type(getattr(conf, name)) is type(default)


@pytest.mark.parametrize("name", NAMES)
def test_a_setting_says_what_it_is_for(name):
    assert getattr(Conf, name).name == name
    assert getattr(Conf, name).help.endswith(".")


@pytest.mark.parametrize("name", SECONDS)
@pytest.mark.parametrize(
    ("given", "value"), [("30", 30.0), (" 2.5 ", 2.5), (30, 30.0), (0.5, 0.5), ("1e3", 1000.0)]
)
def test_seconds_are_read(settings, name, given, value):
    settings.RENDERS = {name: given}

    assert getattr(conf, name) == value


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize(("given", "value"), [("30", 30), (" 7 ", 7), (30, 30)])
def test_whole_numbers_are_read(settings, name, given, value):
    settings.RENDERS = {name: given}

    assert getattr(conf, name) == value


@pytest.mark.parametrize("name", DAYS)
def test_an_age_of_more_than_a_hundred_years_is_an_error(settings, name):
    settings.RENDERS = {name: "36500"}
    assert getattr(conf, name) == 36_500

    settings.RENDERS = {name: "36501"}
    with pytest.raises(ImproperlyConfigured, match="at most 36,500"):
        getattr(conf, name)


@pytest.mark.parametrize("given", ["1", "true", "True", " YES ", "on", True, 1], ids=repr)
def test_on_is_read(settings, given):
    settings.RENDERS = {"SAVE_MEDIA": given}

    assert conf.SAVE_MEDIA is True


@pytest.mark.parametrize("given", ["0", "false", "False", " NO ", "off", False, 0], ids=repr)
def test_off_is_read(settings, given):
    settings.RENDERS = {"SAVE_MEDIA": given}

    assert conf.SAVE_MEDIA is False


@pytest.mark.parametrize(
    "given", ["F47AC10B-58CC-4372-A567-0E02B2C3D479", f" {uuid.UUID(int=7)}\n"]
)
def test_an_installation_id_is_a_uuid(settings, given):
    settings.RENDERS = {"INSTALLATION_ID": given}

    assert str(uuid.UUID(given.strip())) == conf.INSTALLATION_ID


def test_an_installation_id_of_another_form_is_an_error(settings):
    settings.RENDERS = {"INSTALLATION_ID": "staging"}

    with pytest.raises(ImproperlyConfigured, match="a UUID is needed"):
        _ = conf.INSTALLATION_ID


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_read_without_white_space_around_them(settings, name):
    settings.RENDERS = {name: "  sk-key\r\n"}

    assert getattr(conf, name) == "sk-key"


WRONG = [
    *(pytest.param(name, "sk-canary", id=f"{name}: text") for name in [*SECONDS, *COUNTS, *FLAGS]),
    *(pytest.param(name, "", id=f"{name}: empty") for name in [*SECONDS, *COUNTS, *FLAGS]),
    *(pytest.param(name, None, id=f"{name}: none") for name in [*SECONDS, *COUNTS, *FLAGS]),
    *(pytest.param(name, ["sk-canary"], id=f"{name}: list") for name in [*SECONDS, *COUNTS]),
    *(pytest.param(name, "-1", id=f"{name}: negative") for name in [*SECONDS, *COUNTS]),
    *(pytest.param(name, "nan", id=f"{name}: NaN") for name in SECONDS),
    *(pytest.param(name, math.inf, id=f"{name}: infinity") for name in SECONDS),
    *(pytest.param(name, "1e999", id=f"{name}: too large") for name in SECONDS),
    *(pytest.param(name, 1.5, id=f"{name}: fraction") for name in COUNTS),
    *(pytest.param(name, "9" * 5_000, id=f"{name}: too long") for name in COUNTS),
    pytest.param("SAVE_MEDIA", "2", id="SAVE_MEDIA: two"),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_value_names_the_setting_and_its_variable(settings, name, value):
    settings.RENDERS = {name: value}

    with pytest.raises(ImproperlyConfigured) as caught:
        getattr(conf, name)

    assert str(caught.value).startswith(f'RENDERS["{name}"] (RENDERS_{name} in the environment): ')
    assert str(caught.value).endswith(" is needed.")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "sk-canary") for name in [*SECONDS, *COUNTS, *FLAGS]),
        ("SWEEP_BATCH", "12.5-canary"),
        ("SWEEP_SECONDS", "canary\x00"),
    ],
)
def test_a_wrong_value_is_never_shown(settings, name, value):
    settings.RENDERS = {name: value}

    with pytest.raises(ImproperlyConfigured) as caught:
        getattr(conf, name)

    assert "canary" not in "".join(traceback.format_exception(caught.value))


def test_settings_are_read_at_use(settings):
    settings.RENDERS = {"SWEEP_SECONDS": 1}
    assert conf.SWEEP_SECONDS == 1.0

    settings.RENDERS = {"SWEEP_SECONDS": 2}
    assert conf.SWEEP_SECONDS == 2.0


def test_the_grace_is_timeout_and_margin(settings):
    settings.RENDERS = {"REQUEST_TIMEOUT_SECONDS": "30", "LEASE_MARGIN_SECONDS": "15"}

    assert conf.grace_seconds == 45.0


@pytest.mark.parametrize("name", HOURS)
@pytest.mark.parametrize("given", ["soon", "-1", "nan", "inf", "1e9"])
def test_hours_that_are_none_are_told(settings, name, given):
    settings.RENDERS = {name: given}

    with pytest.raises(ImproperlyConfigured, match="a number of hours, zero or more, at most"):
        getattr(conf, name)


def test_an_unknown_plan_is_told_with_those_that_are_known(settings):
    settings.RENDERS = {"PLAN": "gold"}

    with pytest.raises(ImproperlyConfigured, match="one of free, pro is needed"):
        _ = conf.PLAN


@pytest.mark.parametrize(
    ("given", "writes", "at_once"),
    [
        ({}, 120, None),
        ({"PLAN": "free"}, 120, None),
        ({"PLAN": " Pro "}, 300, 24),
        ({"PLAN": "pro", "WRITES_PER_MINUTE": "30", "MAX_IN_FLIGHT": "5"}, 30, 5),
    ],
)
def test_the_plan_sets_the_limits_that_are_not_given(settings, given, writes, at_once):
    settings.RENDERS = given

    limits = workspaces.get("default")
    assert (limits.writes_per_minute, limits.max_in_flight) == (writes, at_once)
    assert limits.reads_per_minute == 40 * writes


@pytest.mark.parametrize("mark", ["/", "#", "?"])
def test_an_address_of_redis_that_cannot_be_read_shows_no_part_of_the_password(settings, mark):
    settings.RENDERS = {"REDIS_URL": f"redis://:s3cret{mark}pass@redis.example:6379/0"}

    with pytest.raises(ImproperlyConfigured, match="a password's") as caught:
        _ = conf.REDIS_URL

    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert "s3cret" not in "".join(shown.format())


@pytest.mark.parametrize(
    ("url", "needed"),
    [
        ("redis+cluster://:SECRET@a/1", "redis+cluster://host:6379,host:6379 is needed"),
        ("redis+sentinel://:s3/SECRET@a/name", "26379/name is needed; a password's"),
        ("redis+sentinal://:SECRET@a/name", "begins with one of redis, rediss, unix, "),
    ],
)
def test_an_address_of_several_that_cannot_be_read_says_what_is_needed(settings, url, needed):
    settings.RENDERS = {"REDIS_URL": url.replace("SECRET", "s3cret")}

    with pytest.raises(ImproperlyConfigured) as caught:
        _ = conf.REDIS_URL

    assert needed in str(caught.value)
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert "s3cret" not in "".join(shown.format())


@pytest.mark.parametrize("url", ["redis+cluster://:p@a,b:1", "rediss+sentinel://a/name/2"])
def test_an_address_of_several_is_kept_as_it_was_given(settings, url):
    settings.RENDERS = {"REDIS_URL": f" {url}\n"}

    assert url == conf.REDIS_URL


@pytest.mark.parametrize("name", TOKENS)
def test_a_token_that_can_be_guessed_is_refused_and_not_shown(settings, name):
    settings.RENDERS = {name: "fifteen-letters"}
    with pytest.raises(ImproperlyConfigured, match="16 characters") as caught:
        getattr(conf, name)
    assert "fifteen" not in "".join(traceback.format_exception(caught.value))

    settings.RENDERS = {name: " sixteen-letters- "}
    assert getattr(conf, name) == "sixteen-letters-"


@pytest.mark.parametrize("name", ["API_KEY", "METRICS_TOKEN", "REDIS_URL", "WEBHOOK_SECRET"])
def test_what_can_be_a_secret_is_not_shown(settings, name):
    settings.RENDERS = {name: "redis://:s3cret@redis.example"}

    assert "s3cret" in getattr(conf, name)
    assert "s3cret" not in repr([getattr(conf, name)])


@pytest.mark.parametrize("name", ADDRESSES)
@pytest.mark.parametrize(
    ("given", "value"),
    [("https://a.example/", "https://a.example"), (" http://a:8000 ", "http://a:8000"), ("", "")],
)
def test_an_address_is_read_without_a_slash_at_its_end(settings, name, given, value):
    settings.RENDERS = {name: given}

    assert getattr(conf, name) == value


@pytest.mark.parametrize("name", ADDRESSES)
@pytest.mark.parametrize("given", ["a.example", "ftp://a.example", "https://", "http://[", "1"])
def test_what_is_no_address_is_told(settings, name, given):
    settings.RENDERS = {name: given}

    with pytest.raises(ImproperlyConfigured, match="an address like https"):
        getattr(conf, name)


@pytest.mark.parametrize(
    ("given", "secrets"),
    [("", []), (" , ", []), ("one", ["one"]), (" old , new,", ["old", "new"])],
)
def test_several_secrets_of_webhooks_have_commas_between(settings, given, secrets):
    settings.RENDERS = {"WEBHOOK_SECRET": given}

    assert list(workspaces.get("default").webhook_secrets) == secrets
    assert "old" not in repr(workspaces.get("default").webhook_secrets)


@pytest.mark.parametrize(
    ("public", "api", "wanted"),
    [
        ("https://a.example", "https://api.sume.com", True),
        ("http://a.example", "https://api.sume.com", False),
        ("", "https://api.sume.com", False),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8999", True),
        ("https://a.example", "http://127.0.0.1:8999", True),
        ("", "http://127.0.0.1:8999", False),
    ],
)
def test_webhooks_go_where_sume_sends_them(settings, public, api, wanted):
    settings.RENDERS = {"WEBHOOK_SECRET": "secret", "PUBLIC_URL": public, "BASE_URL": api}
    assert workspaces.get("default").webhooks_wanted is wanted

    settings.RENDERS = {"PUBLIC_URL": public, "BASE_URL": api}
    assert workspaces.get("default").webhooks_wanted is False


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("", ()),
        (" 127.0.0.1 ", (ip_network("127.0.0.1/32"),)),
        ("minio.internal, 10.0.0.0/8,", ("minio.internal", ip_network("10.0.0.0/8"))),
    ],
)
def test_hosts_and_networks_are_read_from_a_list(settings, given, value):
    settings.RENDERS = {"MEDIA_PRIVATE_HOSTS": given}

    assert conf.private_hosts == value


@pytest.mark.parametrize("given", ["http://minio", "10.0.0.0/99", "a b"])
def test_what_is_neither_host_nor_network_is_told(settings, given):
    settings.RENDERS = {"MEDIA_PRIVATE_HOSTS": given}

    with pytest.raises(ImproperlyConfigured, match=r"a list like 10\.0\.0\.0/8"):
        _ = conf.private_hosts


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize(
    ("given", "value"),
    [("sortedset", "sortedset"), (" Database ", "database"), ("COUNTDOWN", "countdown")],
)
def test_a_scheduler_is_read(settings, name, given, value):
    settings.RENDERS = {name: given}

    assert getattr(conf, name) == value


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("given", ["", "celery", "sorted set", 1])
def test_an_unknown_scheduler_is_refused_with_those_that_are_known(settings, name, given):
    settings.RENDERS = {name: given}

    with pytest.raises(ImproperlyConfigured, match="one of countdown, sortedset, database"):
        getattr(conf, name)
