"""The doctor asks everything, and its status says how bad it is."""

import pytest

from renders.health import doctor
from renders.health.findings import CATALOGUE, Finding, HealthPart, Level


def part(*levels):
    return HealthPart("x", tuple(Finding("Said.", grave=level) for level in levels))


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ([], 0),
        ([part(Level.OK), part(Level.INFO)], 0),
        ([part(Level.OK), part(Level.WARNING, Level.INFO)], 3),
        ([part(Level.ERROR), part(Level.WARNING)], 1),
    ],
)
def test_the_status_is_that_of_the_worst(parts, status):
    assert doctor.status_of(parts) == status


@pytest.mark.parametrize(
    ("own", "there", "not_there"),
    [
        ({"SCHEDULER": "countdown"}, {"broker", "redis"}, {"runrenders", "pollrenders"}),
        ({"SCHEDULER": "sortedset", "TICKS": 0}, {"broker", "pollrenders"}, {"runrenders"}),
        ({"SCHEDULER": "database"}, {"runrenders"}, {"broker", "redis", "beat", "workers"}),
    ],
)
def test_only_what_is_used_is_asked(settings, own, there, not_there):
    settings.RENDERS = {**settings.RENDERS, **own}

    asked = [probe.part for lane in doctor.questions() for probe in lane]

    assert there <= set(asked) and not not_there & set(asked)
    assert len(asked) == len(set(asked))
    offline = [probe.part for lane in doctor.questions(offline=True) for probe in lane]
    assert set(asked) - set(offline) == {"sume"}
    assert "destination" in offline


def test_every_finding_has_a_level_and_a_next_step():
    for code, kind in CATALOGUE.items():
        finding = Finding("Said.", code)
        assert finding.level.name == kind.level
        assert finding.advice == kind.advice and finding.advice.endswith((".", "`"))
