"""What production must be given, and what is never made up there."""

from __future__ import annotations

from typing import Any

import pytest

from portal import production

GIVEN = {"BASALT_SECRET_KEY": "k" * 50, "BASALT_HOSTS": "basalt.example.com", "DATABASE_URL": "postgresql://db/basalt"}


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch, settings: Any) -> pytest.MonkeyPatch:
    settings.PRODUCTION, settings.ALLOWED_HOSTS = True, ["basalt.example.com"]
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_what_is_complete_may_start(given: pytest.MonkeyPatch) -> None:
    assert production.refusal() == ""
    assert production.check() == []


@pytest.mark.parametrize("missing", sorted(GIVEN))
def test_each_setting_is_needed(given: pytest.MonkeyPatch, missing: str) -> None:
    given.delenv(missing)
    assert [name for name, _ in production.faults()] == [missing]
    assert [each.msg.split()[0] for each in production.check()] == [missing]


def test_a_short_key_is_none(given: pytest.MonkeyPatch) -> None:
    given.setenv("BASALT_SECRET_KEY", "k" * 49)
    assert production.refusal().startswith("BASALT_SECRET_KEY has 49 characters")


def test_neither_every_host_nor_debug_pages(given: pytest.MonkeyPatch, settings: Any) -> None:
    settings.ALLOWED_HOSTS, settings.DEBUG = ["*"], True
    assert [name for name, _ in production.faults()] == ["BASALT_HOSTS", "BASALT_DEBUG"]


def test_outside_production_nothing_is_needed(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.PRODUCTION = False
    for name in GIVEN:
        monkeypatch.delenv(name, raising=False)
    assert production.faults() == []
