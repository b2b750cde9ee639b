"""A process that needs the database's tables says so when they are not there yet."""

from __future__ import annotations

import pytest
from django.core.management import CommandError
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


def test_missing_migrations_are_told_by_the_probe_and_end_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MigrationExecutor, "migration_plan", lambda *_: ["one", "two"])
    answer = Client().get("/readyz", headers={"host": "10.0.0.1"})
    assert (answer.status_code, answer.json()["checks"]["database"]) == (503, "lacks 2 migrations (manage.py migrate)")
    with pytest.raises(CommandError, match=r"the database lacks 2 migrations \(manage.py migrate\)"):
        migrated.need()


def test_a_database_that_does_not_answer_ends_a_command_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OperationalError("connection refused\n")

    monkeypatch.setattr(MigrationExecutor, "migration_plan", refuse)
    with pytest.raises(CommandError, match="^the database does not answer: connection refused$"):
        migrated.need()
