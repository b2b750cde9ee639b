"""What a draft would do: the scheduler's own cycles over a copy of the cluster. Nothing is written."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from portal.cockpit.draft import Draft, changes, resource_of
from portal.unblock import queue_preview
from portal.unblock.copy import View
from portal.unblock.queue_preview import QueuePreview
from portal.unblock.shown import Names
from scheduler.conf import Configuration
from scheduler.framework.explain import Verdict

CYCLES = 6
"""Cycles that a draft is played for: more is moved than by one queue."""


@dataclass(slots=True)
class Outcome:
    """`preview` has who starts, waits and gives way; `moved` pods by job that leave their nodes, and of them those placed again,
    `places` how many of those on which node, `whys` why the others wait.

    `settled`: the last cycle decided nothing more, so that this is all that happens at once.
    """

    preview: QueuePreview
    resource: str
    moved: dict[str, tuple[int, int]] = field(default_factory=dict)
    places: dict[str, Counter[str]] = field(default_factory=dict)
    whys: dict[str, Verdict] = field(default_factory=dict)
    settled: bool = False
    cycles: int = 0

    @property
    def is_nothing(self) -> bool:
        """Whether nobody feels it."""
        return self.preview.is_nothing and not self.moved


def ask(view: View, draft: Draft, conf: Configuration | None = None) -> Outcome | None:
    """Play a draft, with another configuration if given. None when the draft has faults, which it tells."""
    began = time.perf_counter()
    resource = resource_of(view)
    events = view.alone(lambda: changes(view, draft, resource)) if not draft.faults else None
    if draft.faults or events is None:
        return None
    before = view.play(cycles=CYCLES)
    after = view.play(events.events, cycles=CYCLES, conf=conf)
    found = Outcome(queue_preview.between(view, before, after), resource, settled=after.settled, cycles=after.cycles)
    for uid, count in sorted(events.moved.items()):
        placed = max(len(after.binds.get(uid, ())) - len(before.binds.get(uid, ())), 0)
        found.moved[uid] = (count, min(placed, count))
        known = {each.name for each in before.binds.get(uid, ())}
        found.places[uid] = Counter(each.node for each in after.binds.get(uid, ()) if each.name not in known)
        if placed < count and (why := after.verdicts.get(uid)) is not None:
            found.whys[uid] = why
        found.preview.starts.pop(uid, None)  # it ran before
    found.preview.milliseconds = (time.perf_counter() - began) * 1000
    return found


def told(user: Any, found: Outcome) -> dict[str, Any]:
    """What a page shows of an outcome, as far as the user may see the jobs."""
    names = Names(user, found.moved)
    moved = [(names.name(uid), names.job(uid), out, back) for uid, (out, back) in found.moved.items()]
    return queue_preview.told(user, found.preview) | {"outcome": found, "moved": moved}


def as_json(user: Any, found: Outcome) -> dict[str, Any]:
    """An outcome as data."""
    names = Names(user, found.moved)
    told = queue_preview.as_json(user, found.preview)
    del told["queue"]
    moved = [names.as_json(uid) | {"pods": out, "placed_again": back} for uid, (out, back) in found.moved.items()]
    return told | {"moved": moved, "settled": found.settled, "cycles": found.cycles}
