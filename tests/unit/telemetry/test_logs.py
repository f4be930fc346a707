"""How lines of the log look."""

import io
import json
import logging
import logging.config

import pytest

from project.logs import logging_config
from renders.telemetry.log_context import about

RENDER = "3cf65526-7b69-4b9a-8f0e-2f6a0a5d6c11"


@pytest.fixture(params=["json", "line"])
def form(request):
    return request.param


@pytest.fixture
def log():
    """Writes with one handler as the settings make it; gives what it has written."""

    def write(form, tell):
        settings = logging_config(form)
        config = logging.config.DictConfigurator(settings)
        for part, make in (("filters", "filter"), ("formatters", "formatter")):
            config.config[part] = {
                name: getattr(config, f"configure_{make}")(given)
                for name, given in settings[part].items()
            }
        handler = config.configure_handler(dict(settings["handlers"]["console"]))
        handler.setStream(io.StringIO())
        logger = logging.Logger("renders.some")
        logger.addHandler(handler)
        tell(logger)
        return handler.stream.getvalue()

    return write


def test_a_line_for_people_ends_with_what_it_is_about(log):
    def tell(logger):
        logger.info("Nothing special.")
        with about(render=RENDER, job="job_1"):
            logger.warning("Render put back for %.1f s.", 2)

    first, second = log("line", tell).splitlines()
    assert first.endswith(" INFO renders.some: Nothing special.")
    assert second.endswith(
        f" WARNING renders.some: Render put back for 2.0 s. [render={RENDER} job=job_1]"
    )


def test_a_json_line_is_one_object(log):
    def tell(logger):
        with about(render=RENDER, request_id="abcdefgh"):
            logger.warning("Two\nlines, “quoted”")

    [line] = log("json", tell).splitlines()
    told = json.loads(line)
    assert told.pop("time").endswith("+00:00")
    assert told.pop("process") > 0
    assert told == {
        "level": "WARNING",
        "logger": "renders.some",
        "message": "Two\nlines, “quoted”",
        "render": RENDER,
        "request_id": "abcdefgh",
    }


def test_an_exception_is_in_its_line(log):
    def tell(logger):
        try:
            raise ValueError("odd")
        except ValueError:
            logger.exception("Failed.")

    [line] = log("json", tell).splitlines()
    told = json.loads(line)
    assert told["message"] == "Failed."
    assert told["exception"].endswith("ValueError: odd")


def test_what_else_a_record_carries_stays_out(log, form):
    def tell(logger):
        logger.info("Hello.", extra={"data": {"args": "('secret',)"}, "request": "secret"})

    assert "secret" not in log(form, tell)


@pytest.mark.parametrize("word", ["", "LINE", "odd"])
def test_any_other_word_gives_lines_for_people(word):
    assert logging_config(word)["handlers"]["console"]["formatter"] == "line"
