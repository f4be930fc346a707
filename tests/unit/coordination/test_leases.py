"""Leases of many renders in one command, and those of a site that needs none."""

import inspect

import pytest

from renders.coordination.leases import Leases, Unshared


class FakeClient:
    """Notes the calls of scripts; each key in `taken` is held by somebody else."""

    def __init__(self, taken=()):
        self.calls = []
        self.taken = set(taken)

    def register_script(self, text):
        def call(keys, args):
            self.calls.append((list(keys), list(args)))
            return [int(key not in self.taken) for key in keys]

        return call


class FakeCluster(FakeClient):
    """Each key's slot is its last letter."""

    def keyslot(self, key):
        return ord(key[-1])


def test_many_are_taken_in_one_command_with_tokens_that_say_that_they_read():
    client = FakeClient(taken=["p:b"])

    tokens = Leases(client, "p:").acquire_many(["a", "b", "c"], 1.5)

    [(keys, [token, millis])] = client.calls
    assert keys == ["p:a", "p:b", "p:c"]
    assert tokens == {"a": token, "c": token}
    assert token.startswith("r")
    assert millis == 1500


def test_two_readers_never_have_the_same_token():
    first, second = (Leases(FakeClient(), "p:").acquire_many(["a"], 1) for _ in range(2))

    assert first["a"] != second["a"]


def test_a_lease_without_a_life_lives_for_a_moment_all_the_same():
    client = FakeClient()

    Leases(client, "p:").acquire_many(["a"], 0)

    assert client.calls[0][1][1] == 1


def test_many_are_given_back_in_one_command_each_with_its_token():
    client = FakeClient()

    Leases(client, "p:").release_many({"a": "r1", "b": "r2"})

    assert client.calls == [(["p:a", "p:b"], ["r1", "r2"])]


@pytest.mark.parametrize("client", [FakeClient(), FakeCluster()], ids=["one", "cluster"])
def test_none_need_no_command(client):
    leases = Leases(client, "p:")

    assert leases.acquire_many([], 1) == {}
    leases.release_many({})
    assert client.calls == []


def test_on_a_cluster_the_keys_of_each_slot_go_together():
    client = FakeCluster(taken=["p:1b"])
    leases = Leases(client, "p:")

    tokens = leases.acquire_many(["1a", "1b", "2a"], 1)
    assert [keys for keys, _ in client.calls] == [["p:1a", "p:2a"], ["p:1b"]]
    assert tokens.keys() == {"1a", "2a"}

    client.calls.clear()
    leases.release_many({"1a": "r1", "1b": "r2", "2a": "r3"})
    assert client.calls == [(["p:1a", "p:2a"], ["r1", "r3"]), (["p:1b"], ["r2"])]


# --- Where nobody shares ----------------------------------------------------------------------


def test_every_lease_is_free_where_nobody_shares():
    leases = Unshared()

    assert leases.acquire("a", 1)
    assert leases.acquire("a", 1)
    assert leases.acquire_many(["a", "b"], 1).keys() == {"a", "b"}
    assert leases.swap("a", "spent", 1)
    assert leases.overtake("a", 1)
    assert leases.hand_on("a", "r1", 1)
    assert leases.release("a", "r1")
    leases.release_many({"a": "r1"})


def test_whatever_a_lease_can_do_needs_no_redis_there():
    can = {name for name, _ in inspect.getmembers(Leases, inspect.isfunction) if name[0] != "_"}

    assert can <= vars(Unshared).keys()
