"""Log lines: JSON for machines, columns for people, and nothing of a local variable in either."""

import logging

import msgspec
import pytest
import structlog

from tocsin.processes import logs
from tocsin.settings import Log

SECRET = "hidden-value"


@pytest.fixture(autouse=True)
def as_it_was():
    root = logging.root
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def fail(secret: str) -> None:
    raise ValueError(len(secret))


def test_an_event_is_one_line_of_json_where_nobody_looks(capsys) -> None:
    logs.configure(Log())

    structlog.get_logger().info("working", lanes={"email": 1})

    printed = capsys.readouterr()
    assert printed.out == ""
    line = msgspec.json.decode(printed.err)
    assert line["timestamp"].endswith("Z")
    assert {k: line[k] for k in ("event", "level", "lanes")} == {
        "event": "working",
        "level": "info",
        "lanes": {"email": 1},
    }


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_traceback_shows_no_local_variable(form, capsys) -> None:
    logs.configure(Log(format=form))

    try:
        fail(SECRET)
    except ValueError:
        structlog.get_logger().exception("loop_failed")

    printed = capsys.readouterr().err
    assert "ValueError" in printed
    assert SECRET not in printed


def test_what_is_below_the_level_is_not_written(capsys) -> None:
    logs.configure(Log(level="warning"))

    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("loud")

    assert msgspec.json.decode(capsys.readouterr().err)["event"] == "loud"


def test_a_library_s_warning_is_a_line_of_the_same_kind_and_its_chatter_none(capsys) -> None:
    logs.configure(Log())

    logging.getLogger("uvicorn.error").info("Shutting down")
    logging.getLogger("uvicorn.error").error("Cancel %s running task(s)", 2)

    line = msgspec.json.decode(capsys.readouterr().err)
    assert (line["event"], line["level"]) == ("Cancel 2 running task(s)", "error")
