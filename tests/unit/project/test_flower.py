"""The configuration of Flower; `tests/integration/test_flower.py` starts the real one."""

import runpy
from unittest import mock

import flower.options  # noqa: F401  (defines the options)
import pytest
from django.conf import settings
from tornado.options import options

CONFIGURATION = str(settings.BASE_DIR / "project/flower.py")


def configured(**given):
    with mock.patch.multiple(options.mockable(), **given):
        return runpy.run_path(CONFIGURATION)


@pytest.mark.parametrize("pairs", [[], [""], ["admin"], ["admin:"], [":word"], ["a:b", "c"]])
def test_it_does_not_start_without_a_password(pairs):
    with pytest.raises(SystemExit, match="does not start without a password"):
        configured(basic_auth=pairs)


@pytest.mark.parametrize(
    "given",
    [{"basic_auth": ["a:b", "c:d:e"]}, {"auth": r".*@example\.com"}],
    ids=["passwords", "accounts"],
)
def test_it_starts_closed_and_on_this_machine(given):
    assert configured(**given)["address"] == "127.0.0.1"


def test_it_listens_where_it_is_told():
    assert configured(basic_auth=["a:b"], address="10.0.0.5")["address"] == "10.0.0.5"
