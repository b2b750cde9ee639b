"""A notice board in the database: how processes tell each other of changed rows where no Redis carries notices.

Who changed rows posts, each web process reads what is new a few times a second and passes it on inside. A notice that is not
seen in time is missed by its number, and whoever missed one loads everything again, as with any other channel.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from channels.layers import get_channel_layer
from django.conf import settings
from django.db import DatabaseError, connection
from django.utils import timezone

from cluster.away import Away
from portal.live.publisher import GROUP, publisher
from portal.models import Notice

KEPT = timedelta(minutes=1)
PRUNE = 100
"""Notices of this process between two looks for old ones."""
READ_SECONDS, QUIET_SECONDS = 0.25, 1.0
"""Between two looks of a web process: while somebody listens, and while nobody does."""
BACK = 200
"""Rows that are looked at again each time: of two that are written at once the later may be seen first."""


def is_used() -> bool:
    """Whether processes of this installation tell each other through the database."""
    return not settings.REDIS_URL


def post(notice: dict[str, Any]) -> None:
    """Put a notice up. Raises DatabaseError."""
    Notice.objects.create(at=timezone.now(), publisher=notice["publisher"], number=notice["number"], topics=notice["topics"])
    if notice["number"] % PRUNE == 0:
        Notice.objects.filter(at__lt=timezone.now() - KEPT).delete()


class Reader:
    """One web process's eyes. `is_heard` says whether anybody listens here."""

    def __init__(self, is_heard: Callable[[], bool]) -> None:
        self._is_heard = is_heard
        self._newest: int | None = None
        self._seen: OrderedDict[int, None] = OrderedDict()

    def new(self) -> list[dict[str, Any]]:
        """Notices of other processes since the last look, oldest first; none at the first."""
        if self._newest is None:
            self._newest = Notice.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
            self._see(*Notice.objects.filter(pk__gt=self._newest - BACK).values_list("pk", flat=True))
            return []
        rows = list(
            Notice.objects.filter(pk__gt=self._newest - BACK).order_by("pk").values_list("pk", "publisher", "number", "topics")
        )
        fresh = [row for row in rows if row[0] not in self._seen]
        self._see(*(row[0] for row in fresh))
        self._newest = max([self._newest, *(row[0] for row in fresh)])
        return [
            {"type": "live.notice", "publisher": of, "number": number, "topics": topics}
            for _, of, number, topics in fresh
            if of != publisher.id
        ]

    def _see(self, *keys: int) -> None:
        self._seen.update(dict.fromkeys(keys))
        while len(self._seen) > 2 * BACK:
            self._seen.popitem(last=False)

    async def run(self) -> None:
        """Read until cancelled. A database that does not answer is asked again later."""
        away = Away("live pages hear nothing of other processes, for the database does not answer")
        while True:
            await asyncio.sleep(READ_SECONDS if self._is_heard() else QUIET_SECONDS)
            try:
                notices = await asyncio.to_thread(_cleanly, self.new)
                away.answered()
            except DatabaseError as error:
                away.failed(error)
                await asyncio.sleep(5.0)
                continue
            for notice in notices:
                await get_channel_layer().group_send(GROUP, notice)


def _cleanly(work: Callable[[], Any]) -> Any:
    """Do in a thread of the pool, whose connection nobody else closes."""
    try:
        return work()
    finally:
        connection.close_if_unusable_or_obsolete()
