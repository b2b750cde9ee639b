"""Loops of the web process over a database that ends their connections, as a restart of PostgreSQL does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections

from jobs.bulk.worker import Worker
from jobs.logs import tails
from portal.maintenance.worker import Worker as DrainWorker
from testbed.stack import eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.services]


def bulk(monkeypatch: pytest.MonkeyPatch, heard: Callable[..., Any]) -> Callable[[threading.Event], None]:
    worker = Worker("test")
    monkeypatch.setattr("jobs.bulk.worker.PAUSE", 0.05)
    monkeypatch.setattr(worker, "take", heard(worker.take))
    return worker.run


def last_lines(monkeypatch: pytest.MonkeyPatch, heard: Callable[..., Any]) -> Callable[[threading.Event], None]:
    monkeypatch.setattr(tails, "EVERY", 0.05)
    monkeypatch.setattr(tails, "due", heard(tails.due))
    return tails.run


def drains(monkeypatch: pytest.MonkeyPatch, heard: Callable[..., Any]) -> Callable[[threading.Event], None]:
    worker = DrainWorker("test")
    monkeypatch.setattr("portal.maintenance.worker.PAUSE", 0.05)
    monkeypatch.setattr(worker, "take", heard(worker.take))
    return worker.run


@pytest.mark.parametrize("part", [bulk, last_lines, drains])
def test_it_goes_on_over_a_new_connection(part: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no connection to lose")
    outcomes, pids = list[str](), set[int]()

    def heard(ask: Callable[[], Any]) -> Callable[[], Any]:
        def asked() -> Any:
            try:
                found = ask()
            except Exception as error:
                outcomes.append(type(error).__name__)
                raise
            pids.add(connection.connection.info.backend_pid)
            outcomes.append("ok")
            return found

        return asked

    stop, work = threading.Event(), part(monkeypatch, heard)

    def run() -> None:
        work(stop)
        connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        eventually(lambda: "ok" in outcomes)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [pids.copy().pop()])  # the part's own, and nobody else's
        eventually(lambda: "OperationalError" in outcomes)
        eventually(lambda: "ok" in outcomes[outcomes.index("OperationalError") :])
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()
