"""The scheduler's first page over the live channel: parts that changed, seldom enough, and only for who may see them."""

from __future__ import annotations

import time

import pytest
from channels.db import database_sync_to_async

from cluster import runtime
from portal.cockpit import versions
from portal.decisions import Sink
from portal.live import consumer
from portal.live.cockpit import INTERVALS
from scheduler.framework.record import CycleRecord
from scheduler.source import ConfState
from tests.portal.test_live import subscribed
from tests.portal.test_live_rights import by_group, change, person, watching  # noqa: F401 - fixtures

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.services]
TOPIC = "cockpit:2m.action.all.0"
TEXT = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'


@database_sync_to_async
def keep(*numbers: int) -> None:
    """Cycles that placed a pod each, just now."""
    sink = Sink()
    for number in numbers:
        sink(CycleRecord(number, runtime.now().timestamp(), milliseconds=10.0 * number, actions={"allocate": 9.0}, bound=1))
    sink.write()


@database_sync_to_async
def configure(text: str) -> None:
    sink = Sink()
    sink.configured(ConfState("/etc/x.conf", text, runtime.now().timestamp()))
    sink.write()


def parts(message) -> dict[str, str]:
    return {row["uid"]: row["html"]["en"] for row in message["changed"]}


async def test_a_cycle_that_is_kept_comes_with_the_parts_that_it_changes_and_no_others(open_page):
    await keep(1)
    await configure(TEXT)
    page, first = await subscribed(open_page, await person(), TOPIC, uids=["figures"], seq=None)
    assert (first["type"], "Cycle 1" in parts(first)["figures"]) == ("snapshot", True)
    await keep(2)
    second = await page.hear()
    assert (second["type"], second["seq"]) == ("delta", first["seq"] + 1)
    await keep(3)
    third = parts(await page.hear())
    assert "Cycle 3" in third["figures"]
    assert {"bars", "last", "time", "did"} <= third.keys()
    assert third.keys().isdisjoint({"shape", "evictions", "evicted", "configuration", "state"})


async def test_another_configuration_in_force_comes_without_a_cycle(open_page):
    await keep(1)
    await configure(TEXT)
    page, first = await subscribed(open_page, await person(), TOPIC, uids=[], seq=None)
    newest = database_sync_to_async(lambda: versions.newest().pk)
    assert f">v{await newest()}<" in parts(first)["configuration"]
    await configure(TEXT + "# more\n")
    assert f">v{await newest()}<" in parts(await page.hear())["configuration"]


async def test_many_cycles_are_few_messages(open_page):
    page, first = await subscribed(open_page, await person(), TOPIC, uids=[], seq=None)
    began = time.monotonic()
    for number in range(1, 9):
        await keep(number)
    heard = [await page.hear()]
    while "Cycle 8" not in parts(heard[-1]).get("figures", ""):
        heard.append(await page.hear())
    assert len(heard) <= 2 + (time.monotonic() - began) / INTERVALS["2m"]
    assert [message["seq"] for message in heard] == [first["seq"] + 1 + place for place in range(len(heard))]


def test_no_range_is_told_oftener_than_four_times_a_second():
    assert min(INTERVALS.values()) >= 0.25


@pytest.mark.parametrize("name", ["cockpit:", "cockpit:2m", "cockpit:7d.action.all.0", "cockpit:2m.action.all.01"])
async def test_what_no_page_has_is_no_topic(open_page, name):
    _, told = await watching(open_page, await person(), name)
    assert told["type"] == "error"


async def test_who_may_not_see_the_scheduler_is_refused_and_who_may_no_longer_is_let_go(open_page, by_group, monkeypatch):  # noqa: F811
    monkeypatch.setattr(consumer, "CHECK", 0.1)
    _, told = await watching(open_page, await person("eve"), TOPIC)
    assert (told["type"], told["detail"]) == ("error", "you may not see this")
    page, first = await watching(open_page, boss := await person("boss", is_staff=True), TOPIC)
    assert first["type"] == "snapshot"
    await change(boss, is_staff=False)
    told = await page.hear()
    assert (told["type"], told["detail"]) == ("error", "you may not see this any more")
