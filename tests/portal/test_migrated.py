"""A process that needs the database's tables waits for them, and says so."""

from __future__ import annotations

import threading

import pytest
from django.db import OperationalError
from django.db.migrations.executor import MigrationExecutor
from django.test import Client

from portal import migrated

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrated, "_known", False)


def test_a_database_that_is_up_to_date_lacks_nothing_and_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert migrated.lacks() == ""
    monkeypatch.setattr(MigrationExecutor, "migration_plan", lambda *_: ["one"])
    assert migrated.lacks() == ""


def test_missing_migrations_are_told_by_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MigrationExecutor, "migration_plan", lambda *_: ["one", "two"])
    answer = Client().get("/readyz", headers={"host": "10.0.0.1"})
    assert (answer.status_code, answer.json()["checks"]["database"]) == (503, "lacks 2 migrations (manage.py migrate)")


def test_a_part_begins_once_the_tables_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = iter([OperationalError("connection refused\n"), ["one"], []])

    def plan(*_: object) -> list[str]:
        found = next(plans)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(MigrationExecutor, "migration_plan", plan)
    monkeypatch.setattr(migrated, "PAUSE", 0.001)
    monkeypatch.setattr(migrated.connections, "close_all", lambda: None)  # the test's own transaction lives on
    began: list[bool] = []
    migrated.after(lambda stop: began.append(stop.is_set()))(threading.Event())
    assert began == [False]
    assert next(plans, None) is None


def test_a_part_that_is_told_to_stop_waits_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MigrationExecutor, "migration_plan", lambda *_: ["one"])
    stop = threading.Event()
    stop.set()
    migrated.after(lambda _: pytest.fail("it began"))(stop)
