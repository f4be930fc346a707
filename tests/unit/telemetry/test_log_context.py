"""What a log line is about."""

import logging
import threading

import pytest

from renders.tasks import begin_context, end_context, poll_due, submit_render
from renders.telemetry import log_context
from renders.telemetry.log_context import about, note

RENDER = "3cf65526-7b69-4b9a-8f0e-2f6a0a5d6c11"


@pytest.fixture
def told():
    """What is on a record made now: its fields that are not empty, and its one text."""

    def tell(**extra):
        record = logging.makeLogRecord({"msg": "hello", **extra})
        assert log_context.Context().filter(record)
        fields = {name: getattr(record, name) for name in log_context.FIELDS}
        return {name: word for name, word in fields.items() if word}, record.context

    return tell


def test_a_line_about_nothing_says_nothing(told):
    assert told() == ({}, "")


def test_a_line_says_what_it_is_about_until_the_block_ends(told):
    with about(render=RENDER, job="job_1"):
        with about(job="job_2", task=""):
            assert told()[0] == {"render": RENDER, "job": "job_2"}
        assert told() == ({"render": RENDER, "job": "job_1"}, f" [render={RENDER} job=job_1]")
    assert told()[0] == {}


def test_what_is_noted_holds_for_the_rest_of_the_block_alone(told):
    note(job="nobody's")
    with about(render=RENDER):
        with about(task="poll"):
            note(job="job_1")
            assert told()[0]["job"] == "job_1"
        assert told()[0] == {"render": RENDER}
    assert told()[0] == {}


def test_the_block_ends_with_an_exception_too(told):
    with pytest.raises(ValueError), about(render=RENDER):
        raise ValueError
    assert told()[0] == {}


def test_another_thread_is_about_something_else(told):
    found = []
    with about(render=RENDER):
        thread = threading.Thread(target=lambda: found.append(told()[0]))
        thread.start()
        thread.join()
    assert found == [{}]


def test_nobody_can_write_a_line_of_their_own(told):
    with about(sume_request="a\nERROR forged \x1b[31m" + "x" * 1000):
        fields, text = told()

    assert fields["sume_request"].startswith("a?ERROR?forged?[31mxxx")
    assert len(fields["sume_request"]) == log_context.LONGEST
    assert "\n" not in text


def test_a_task_names_itself_and_its_render(told):
    begin_context(task_id="t1", task=submit_render, args=[RENDER])
    assert told()[0] == {"render": RENDER, "task": "submit_render", "task_id": "t1"}
    end_context(task_id="t1")

    assert told()[0] == {}


@pytest.mark.parametrize("args", [[], ["0"], ["0", "w123"], None])
def test_a_task_without_a_render_names_itself_alone(told, args):
    begin_context(task_id="t1", task=poll_due, args=args)
    assert told()[0] == {"task": "poll_due", "task_id": "t1"}
    end_context(task_id="t1")


def test_a_message_that_came_is_about_its_render(told):
    data = {"name": "renders.tasks.poll_render", "id": "t1", "args": f"('{RENDER}', 'w1234')"}
    assert told(data=data)[0] == {"render": RENDER, "task": "poll_render", "task_id": "t1"}
    assert told(data={**data, "name": "somebody.elses"})[0] == {}
    assert told(data="odd")[0] == {}


@pytest.mark.django_db
def test_a_page_that_is_not_there_is_logged_with_the_requests_id(client, caplog):
    response = client.get("/nowhere/")

    [record] = [record for record in caplog.records if record.name == "django.request"]
    assert log_context.Context().filter(record)
    assert record.request_id == response["X-Request-ID"]
