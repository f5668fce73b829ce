"""Logs: one line for each event on standard error; JSON for machines, columns for people."""

import logging
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec
import structlog

from tocsin.settings import Log

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(settings: Log) -> None:
    """Set up structlog, and send what libraries log the same way."""
    as_json = settings.format == "json" or (settings.format == "auto" and not sys.stderr.isatty())
    shared: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    render = _for_machines() if as_json else _for_people()
    structlog.configure(
        processors=[*shared, *render],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.level]),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
        )
    )
    # What a library finds worth an informative line is not worth one of ours.
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


def _for_machines() -> list[Any]:
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(_encoded)]


def _for_people() -> list[Any]:
    # The plain one: the others show the values of local variables.
    return [
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    ]


def _encoded(event: object, **_: Callable[[object], object]) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()
