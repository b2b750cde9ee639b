"""Logs as data: one line an event, coloured on a terminal, JSON elsewhere; Django's own loggers go the same way."""

from __future__ import annotations

import sys
from typing import Any

import structlog

_SHARED = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def _without_trace(_logger: Any, _method: str, event: dict[str, Any]) -> dict[str, Any]:
    """A refused request (4xx) is the client's matter: its line says enough without our stack."""
    if event.get("logger") == "django.request" and event.get("level") == "warning":
        event.pop("exc_info", None)
    return event


def config(level: str) -> dict[str, Any]:
    """Django's LOGGING for a level's name; also sets up structlog itself.

    Raises ValueError for a level that does not exist.
    """
    if level.lower() not in ("debug", "info", "warning", "error"):
        raise ValueError(f"BASALT_LOG must be debug, info, warning or error, not {level!r}")
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    renderer = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": [*_SHARED, _without_trace],
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            *([] if sys.stderr.isatty() else [structlog.processors.format_exc_info]),
            renderer,
        ],
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": formatter},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {
            "django.server": {"handlers": ["stderr"], "propagate": False},
            "uvicorn.access": {"level": "WARNING"},
            "uvicorn.error": {"level": "WARNING"},
            "axes": {"level": "WARNING"},
            "urllib3": {"level": "ERROR"},  # each try again is a warning there; who gives up says so here
        },
    }
