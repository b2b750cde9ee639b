"""Binds that wait until the claims of their pods are bound: volumes are made and bound by others, and that takes its time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cluster import objects
from cluster.port import Binding
from cluster.volumes import SELECTED_NODE
from scheduler.estate import Estate
from scheduler.model.supply import Supply
from scheduler.model.tasks import TaskStatus

Bind = tuple[Binding, Supply]


@dataclass(slots=True)
class _Entry:
    binding: Binding
    supply: Supply
    since: float
    asked: bool = False


class Awaiting:
    """By pod uid. What is written already is known to be; the tasks stay Binding meanwhile."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, binding: Binding, supply: Supply, now: float) -> None:
        """One more bind that waits."""
        self._entries[binding.uid] = _Entry(binding, supply, now)

    def take(self, estate: Estate, now: float, timeout: float) -> tuple[list[Bind], list[Bind]]:
        """Take out the binds that may be made now, and those that must be given up."""
        ready: list[Bind] = []
        lost: list[Bind] = []
        for uid, entry in list(self._entries.items()):
            task = estate.tasks.get(uid)
            left = entry.binding, replace(entry.supply, volumes=())
            if task is None or task.status is not TaskStatus.BINDING:
                lost.append(left)
            elif estate.is_met(entry.supply):
                ready.append(left)
            elif now >= entry.since + timeout or self._is_refused(estate, entry):
                lost.append(left)
            else:
                continue
            del self._entries[uid]
        return ready, lost

    @staticmethod
    def _is_refused(estate: Estate, entry: _Entry) -> bool:
        """Whether a provisioner took the node's name off a claim again: it cannot make the volume there."""
        wanted = list(_to_be_made(entry.supply))
        claims = [estate.storage.claim(key) for key in wanted]
        named = all(claim is not None and SELECTED_NODE in objects.annotations(claim) for claim in claims)
        was, entry.asked = entry.asked, entry.asked or (named and bool(wanted))
        return was and not named


def _to_be_made(supply: Supply) -> Iterator[str]:
    return (choice.claim for choice in supply.volumes if not choice.volume)
