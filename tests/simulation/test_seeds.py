"""Some seeds for every run of the tests; `python -m tests.simulation` runs any number."""

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.plan import SCHEDULERS, drawn
from tests.simulation.running import first_found, shrunk, tried
from tests.simulation.world import World

SEEDS, CHUNK = 200, 10
# What seeds have found, and was mended since.
FOUND = {
    "a line whose places are all taken by unsure renders after a refusal": 1002,
}

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_render_ends_once_is_billed_once_and_has_its_effect_once(first: int) -> None:
    found = first_found(range(first, first + CHUNK))

    assert found is None, str(shrunk(found))


@pytest.mark.parametrize("seed", FOUND.values(), ids=FOUND)
def test_what_a_seed_found_is_mended(seed: int) -> None:
    found = first_found(range(seed, seed + 1))

    assert found is None, str(found)


@pytest.mark.parametrize("seed", range(len(SCHEDULERS)), ids=SCHEDULERS)
def test_a_seed_runs_the_same_again(seed: int) -> None:
    first, second = World(drawn(seed)), World(drawn(seed))

    first.run()
    second.run()

    assert first.history == second.history


def test_a_bug_is_found_and_shrunk_to_what_it_needs() -> None:
    with MUTANTS["resend without the key"]():
        found = first_found(range(20))
        assert found
        smallest = shrunk(found)
        again = tried(smallest.plan)

    assert len(smallest.plan.incidents) <= len(found.plan.incidents)
    assert again and again.why == smallest.why
    assert f"Seed {found.plan.seed}" in str(smallest)
