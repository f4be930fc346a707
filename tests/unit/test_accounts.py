"""The balance is read wherever it is likely to stand, and nothing else is taken for it."""

import pytest

from renders.accounts import read_balance


@pytest.mark.parametrize(
    ("payload", "amount"),
    [
        ({"data": {"currency": "USD", "balance_usd_micros": 5}}, 5),
        ({"balance_usd_micros": -3}, -3),
        ({"data": {"balance": {"available_usd_micros": 7, "currency": "USD"}}}, 7),
        ({"data": {"workspace": {"balance_usd_micros": 0}}}, 0),
        ({"data": {"available_usd_micros": 1, "balance_usd_micros": 9}}, 1),
        ({"data": {"balance": 12.5}}, None),
        ({"data": {"balance_usd_micros": True}}, None),
        ({"data": {"balance_usd_micros": "5"}}, None),
        ({"data": None}, None),
        ([], None),
        (None, None),
    ],
)
def test_the_balance_is_read_leniently(payload, amount):
    assert read_balance(payload) == amount
