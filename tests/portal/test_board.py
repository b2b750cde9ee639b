"""The notice board: what one process posts the others hear, once, and nobody hears himself."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from channels.layers import get_channel_layer
from django.utils import timezone

from portal.live import board
from portal.live.publisher import GROUP, publisher
from portal.models import Notice

pytestmark = pytest.mark.django_db


def notice(number: int, of: str = "other", **topics: Any) -> dict[str, Any]:
    return {"type": "live.notice", "publisher": of, "number": number, "topics": topics or {"jobs": ["a"]}}


def numbers(reader: board.Reader) -> list[int]:
    return [found["number"] for found in reader.new()]


def test_what_was_posted_before_is_nobodys_news() -> None:
    board.post(notice(1))
    reader = board.Reader(lambda: True)
    assert numbers(reader) == []
    board.post(notice(2))
    board.post(notice(3, jobs=None))
    assert reader.new() == [notice(2), notice(3, jobs=None)]
    assert numbers(reader) == []


def test_two_readers_hear_the_same_and_nobody_hears_himself() -> None:
    readers = [board.Reader(lambda: True) for _ in range(2)]
    assert [numbers(reader) for reader in readers] == [[], []]
    board.post(notice(1, of=publisher.id))
    board.post(notice(2))
    assert [numbers(reader) for reader in readers] == [[2], [2]]


def test_one_that_was_written_earlier_and_is_seen_later_is_not_missed() -> None:
    reader = board.Reader(lambda: True)
    assert numbers(reader) == []
    board.post(notice(5))
    late = Notice.objects.get()
    Notice.objects.filter(pk=late.pk).delete()  # as if its transaction were not done yet
    board.post(notice(6))
    assert numbers(reader) == [6]
    late.save(force_insert=True)
    assert numbers(reader) == [5]
    assert numbers(reader) == []


def test_old_notices_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "PRUNE", 3)
    board.post(notice(1))
    Notice.objects.update(at=timezone.now() - timedelta(minutes=2))
    board.post(notice(2))
    assert Notice.objects.count() == 2
    board.post(notice(3))
    assert list(Notice.objects.order_by("pk").values_list("number", flat=True)) == [2, 3]


@pytest.mark.django_db(transaction=True)
async def test_a_notice_of_another_process_reaches_the_sockets_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "READ_SECONDS", 0.01)
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(GROUP, channel)
    reading = asyncio.create_task(board.Reader(lambda: True).run())
    try:
        await asyncio.sleep(0.2)
        await asyncio.to_thread(board._cleanly, lambda: board.post(notice(7)))
        assert await asyncio.wait_for(layer.receive(channel), 5) == notice(7)
    finally:
        reading.cancel()
        await layer.group_discard(GROUP, channel)


def test_a_publisher_posts_what_it_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(publisher, "post", told.append)

    async def tell() -> None:
        publisher.attach(asyncio.get_running_loop())
        publisher.offer("jobs", {"b", "a"})
        for _ in range(100):
            await asyncio.sleep(0.01)
            if told:
                break
        publisher.attach(None)

    asyncio.run(tell())
    assert [(each["publisher"], each["topics"]) for each in told] == [(publisher.id, {"jobs": ["a", "b"]})]
