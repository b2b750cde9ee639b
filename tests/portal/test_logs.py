"""What a request leaves in the log."""

import io
import json
import logging.config
import sys

from django.core.exceptions import PermissionDenied

from portal import logs


def line(level):
    """The line of an answer to a request that ended in an exception."""
    form = logs.config("info")["formatters"]["line"]
    formatter = logging.config.DictConfigurator({"version": 1}).configure_formatter(form)
    try:
        raise PermissionDenied("no")
    except PermissionDenied:
        record = logging.LogRecord("django.request", level, "log.py", 1, "answered %s", ("so",), sys.exc_info())
    return json.loads(formatter.format(record))


def test_a_refusal_leaves_a_line_and_a_fault_of_ours_its_stack(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # no terminal, so that lines are JSON
    refused, broken = line(logging.WARNING), line(logging.ERROR)
    assert (refused["level"], refused["event"]) == ("warning", "answered so")
    assert "exception" not in refused
    assert "Traceback" in broken["exception"]


def test_tries_again_are_told_by_who_gives_up_and_not_by_the_library_too():
    assert logs.config("info")["loggers"]["urllib3"] == {"level": "ERROR"}
