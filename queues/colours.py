"""Which colour a queue has: the same on every page, whatever else is shown there."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from django.core.cache import cache

from cluster.runtime import now
from queues import history
from queues.models import Queue
from queues.queries import FIRST, leaves

CATEGORIES = 6
"""Colours that can be told apart; whoever has none is drawn grey, among the others."""

DAY = history.WINDOWS["24h"]
RENEW = 300  # seconds for which the most used queues are not looked for again


def categories(rows: Sequence[Queue]) -> dict[str, int]:
    """The categories, 1 to CATEGORIES, of queues by name, oldest first; one that is absent is among the others.

    While the queues that hold jobs are few, each has its own. Of many, those have one that used most GPUs over the last
    day. Which one follows from the name, so a queue keeps it whoever comes or goes, unless an older one has it already.
    """
    found: dict[str, int] = {}
    free = set(range(1, CATEGORIES + 1))
    for queue in _main(leaves(rows)):
        wanted = crc32(queue.name.encode()) % CATEGORIES
        place = next(at for step in range(CATEGORIES) if (at := (wanted + step) % CATEGORIES + 1) in free)
        found[queue.name] = place
        free.discard(place)
    return found


def _main(rows: Sequence[Queue]) -> list[Queue]:
    """At most CATEGORIES queues, oldest first. One made anew may stand beside its forerunner for a moment: it counts once."""
    oldest = sorted({row.name: row for row in rows}.values(), key=lambda row: (row.created_at, row.name))
    names = [row.name for row in oldest]
    most = cache.get_or_set("queues.most_used", lambda: history.most_used(names, FIRST[0], DAY, now(), CATEGORIES), RENEW)
    main = [*(name for name in most or () if name in names), *(name for name in names if name not in (most or ()))][:CATEGORIES]
    return [row for row in oldest if row.name in main]
