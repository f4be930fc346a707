"""The steps after a restored backup can be followed as they are written."""

import io
import re

import pytest
from django.core.management import call_command, load_command_class

from renders.models import RenderJob
from renders.reports import standing
from renders.services import create_render
from tests.unit.docs.reading import commands, page, rows

PAGE = page("operations")
COMMANDS = commands(re.sub("^   ", "", PAGE, flags=re.MULTILINE))


@pytest.mark.django_db
def test_the_commands_that_follow_a_restore_pause_sending_and_compare(sume):
    render = sume.run_to_end(create_render("a fox"))
    RenderJob.objects.filter(pk=render.pk).delete()
    pause, compare = COMMANDS
    assert [words[:2] for words in COMMANDS] == [["python", "manage.py"]] * 2

    call_command(*pause[2:], verbosity=0)
    assert any(gate.held for gate in standing.gates("default"))
    out = io.StringIO()
    with pytest.raises(SystemExit) as end:
        call_command(*compare[2:], stdout=out)
    assert end.value.code == 1
    assert render.sume_job_id in out.getvalue()
    assert "not paused" not in out.getvalue()


def test_the_options_of_the_comparison_are_those_of_the_command():
    told = [cells[0].strip("`") for cells in rows(PAGE, "option | meaning")]
    parser = load_command_class("renders", "rendersreconcile").create_parser("manage.py", "x")
    own = parser.parse_args([])

    assert told == ["--workspace", "--limit", "--hours", "--checks"]
    meanings = " ".join(cells[1] for cells in rows(PAGE, "option | meaning"))
    assert [own.limit, own.hours, own.checks] == [500, 72, 200]
    assert all(f"({number})" in meanings for number in (500, 72, 200))
