"""What the queue pages show: the tree with its shares. Amounts are in smallest units."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from django.db.models import F
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from cluster.access import policy
from cluster.display import amount, number
from cluster.models import Event, Node
from cluster.quantities import is_gpu
from queues.models import Queue
from queues.rows import queue_row
from queues.tree import ROOT

FIRST = ("nvidia.com/gpu", "amd.com/gpu", "cpu", "memory")
HIDDEN = ("pods", "ephemeral-storage")
"""Counted by the scheduler, asked for by nobody: shown on a queue's own page only."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One resource of one queue. `capability` None means no limit; `scale` is the full width that its level shares."""

    queue: str
    resource: str
    guarantee: int
    deserved: int
    allocated: int
    admitted: int
    request: int
    capability: int | None
    scale: int = 0

    @property
    def borrowed(self) -> int:
        """What is in use beyond what is deserved."""
        return max(0, self.allocated - self.deserved) if self.deserved else 0

    @property
    def empty(self) -> bool:
        return not (self.guarantee or self.deserved or self.allocated or self.admitted or self.request or self.capability)

    @property
    def pending(self) -> int:
        """What waits and was not admitted."""
        return max(0, self.request - self.admitted)

    @property
    def pair(self) -> tuple[str, str, str]:
        """Allocated and deserved in one unit, that of the larger."""
        return amounts((self.allocated, self.deserved), self.resource)

    @property
    def style(self) -> str:
        """The share bar's widths as CSS variables."""
        full = self.scale or 1
        cap = full if self.capability is None else self.capability
        parts = {"cap": cap, "gua": self.guarantee, "des": self.deserved, "alc": self.allocated, "adm": self.admitted}
        return ";".join(f"--{name}:{min(100.0, 100 * value / full):.2f}%" for name, value in parts.items())

    @property
    def label(self) -> str:
        """The bar in words, for those who do not see it."""
        values = {
            "queue": self.queue,
            "guarantee": _text(self.guarantee, self.resource),
            "deserved": _text(self.deserved, self.resource),
            "allocated": _text(self.allocated, self.resource),
            "admitted": _text(self.admitted, self.resource),
        }
        if self.capability is None:
            return label_form(limited=False) % values
        return label_form(limited=True) % (values | {"capability": _text(self.capability, self.resource)})


def label_form(*, limited: bool) -> str:
    """A bar in words, with places for its amounts."""
    if not limited:
        return _(
            "%(queue)s: guarantee %(guarantee)s, deserved %(deserved)s, allocated %(allocated)s, admitted %(admitted)s, no limit"
        )
    return _(
        "%(queue)s: guarantee %(guarantee)s, deserved %(deserved)s, allocated %(allocated)s,"
        " admitted %(admitted)s, capability %(capability)s"
    )


def amounts(pair: tuple[int, int], resource: str) -> tuple[str, str, str]:
    """Two amounts and their unit, which is that of the larger; each with its own where one would be rounded to nothing."""
    _larger, unit = amount(max(pair), resource)
    if not unit:
        return amount(pair[0], resource)[0], amount(pair[1], resource)[0], ""
    step = BINARY[unit]
    if 0 < min(pair) < 0.05 * step:  # too little to be told in that unit
        return _text(pair[0], resource), _text(pair[1], resource), ""
    return number(pair[0] / step), number(pair[1] / step), unit


BINARY = {unit: 1024**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}


def _text(units: int, resource: str) -> str:
    return _said(units, resource, get_language())


@lru_cache(maxsize=8192)
def _said(units: int, resource: str, _language: str | None) -> str:
    return " ".join(amount(units, resource)).strip()


@dataclass(slots=True)
class Branch:
    """One line of the tree. `above` is the queue that it is shown below, `parent` says that others are shown below it.

    The counts are of jobs in it and below it; `names` are these queues.
    """

    queue: Queue
    depth: int
    above: str
    parent: bool
    bars: list[Bar] = field(default_factory=list)
    pending: int = 0
    admitted: int = 0
    running: int = 0
    names: list[str] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        """Jobs without their pods, admitted or not."""
        return self.pending + self.admitted

    @property
    def jobs_query(self) -> str:
        """Narrows the list of jobs to those that the counts are of; root's are all."""
        return "" if self.queue.name == ROOT else urlencode({"queue": self.names}, doseq=True)


def queues(user: Any) -> list[Queue]:
    """The queues that the user may see."""
    return list(policy().visible(user, Queue.objects.filter(deleted_at=None)).order_by("name"))


def named(user: Any, names: Iterable[str]) -> dict[str, Queue]:
    """The queues of these names that the user may see, those that are gone too; one that is there hides those before it."""
    rows = policy().visible(user, Queue.objects.filter(name__in=names)).only("name", "parent", "deleted_at")
    return {row.name: row for row in rows.order_by(F("deleted_at").asc(nulls_last=True))}


def leaves(rows: Sequence[Queue]) -> list[Queue]:
    """The queues that hold jobs: those that no other queue is below."""
    above = {row.parent for row in rows}
    return [row for row in rows if row.name not in above and row.name != ROOT]


def resources(rows: Iterable[Queue]) -> list[str]:
    """The resources that any queue speaks of: GPUs first, then CPU and memory, then the rest by name."""
    names = {"cpu", "memory"}
    for row in rows:
        for amounts in (row.capability, row.deserved, row.guarantee, row.share_allocated, row.share_request):
            names.update(amounts)
    names.difference_update(HIDDEN)
    return sorted(names, key=lambda name: (FIRST.index(name) if name in FIRST else 1 if is_gpu(name) else len(FIRST), name))


def capacity() -> Counter[str]:
    """What the ready nodes have together."""
    total: Counter[str] = Counter()
    for allocatable in Node.objects.filter(deleted_at=None, ready=True).values_list("allocatable", flat=True):
        total.update(allocatable)
    return total


def main_gpu(total: Mapping[str, int]) -> str:
    """The resource by which most of the whole GPUs are asked for; NVIDIA's where there are none."""
    return max(filter(is_gpu, total), key=lambda name: (total[name], name), default=FIRST[0])


def tree(rows: Sequence[Queue], shown: Sequence[str], total: Mapping[str, int]) -> list[Branch]:
    """The queues in tree order with a bar a resource. A parent holds at least what its children hold together."""
    branches = list(_walk(rows))
    children: defaultdict[str, list[Branch]] = defaultdict(list)
    for branch in branches:
        if branch.above:
            children[branch.above].append(branch)
    for branch in reversed(branches):  # children come before their parents
        below = children[branch.queue.name]
        branch.names = [branch.queue.name, *(name for each in below for name in each.names)]
        branch.pending = branch.queue.groups_pending + sum(each.pending for each in below)
        branch.admitted = branch.queue.groups_inqueue + sum(each.admitted for each in below)
        branch.running = branch.queue.groups_running + sum(each.running for each in below)
        branch.bars = [_bar(branch.queue, name, [each.bars[at] for each in below], total) for at, name in enumerate(shown)]
    _scale(branches)
    return branches


def _walk(rows: Sequence[Queue]) -> Iterator[Branch]:
    """Root, then depth first by name. A queue whose parent is missing, or above itself, hangs below root."""
    by_name = {row.name: row for row in rows}
    below: defaultdict[str, list[Queue]] = defaultdict(list)
    for row in rows:
        if row.name != ROOT:
            below[row.parent if row.parent in by_name and not _loops(row, by_name) else ROOT].append(row)
    stack = [(by_name[ROOT], 0, "")] if ROOT in by_name else [(row, 0, "") for row in reversed(below[ROOT])]
    while stack:
        row, depth, above = stack.pop()
        yield Branch(row, depth, above, bool(below[row.name]))
        stack.extend((child, depth + 1, row.name) for child in reversed(below[row.name]))


def _loops(row: Queue, by_name: Mapping[str, Queue]) -> bool:
    seen = {row.name}
    name = row.parent
    while name in by_name and name != ROOT:
        if name in seen:
            return True
        seen.add(name)
        name = by_name[name].parent
    return False


def matching(branches: Sequence[Branch], text: str) -> list[Branch]:
    """The branches whose names hold a text, with those that they hang below."""
    wanted = {branch.queue.name for branch in branches if text.lower() in branch.queue.name}
    above = {branch.queue.name: branch.above for branch in branches}
    for name in list(wanted):
        while name := above.get(name, ""):
            wanted.add(name)
    return [branch for branch in branches if branch.queue.name in wanted]


def tree_json(
    rows: Sequence[Queue], branches: Sequence[Branch], shown: Sequence[str], total: Mapping[str, int]
) -> dict[str, Any]:
    """What the live tree computes its bars from, when a queue's figures change."""
    return {
        "resources": list(shown),
        "total": {name: total.get(name, 0) for name in shown},
        "order": [[branch.queue.name, branch.depth] for branch in branches],
        "queues": [_slim(row, shown) for row in rows],
    }


def _slim(queue: Queue, shown: Sequence[str]) -> dict[str, Any]:
    """What of a queue's row the tree is computed from."""
    row = queue_row(queue)
    found = {key: row[key] for key in ("name", "parent", "state", "groups_pending", "groups_inqueue", "groups_running")}
    for key in ("capability", "guarantee", "deserved_spec", "allocated", "deserved", "request", "inqueue"):
        found[key] = row[key] and {name: row[key][name] for name in shown if name in row[key]}
    return found


def _bar(queue: Queue, resource: str, below: Sequence[Bar], total: Mapping[str, int]) -> Bar:
    def at_least(own: int, part: str) -> int:
        return max(own, sum(getattr(bar, part) for bar in below))

    root = queue.name == ROOT
    deserved = queue.share_deserved.get(resource, queue.deserved.get(resource, 0))
    allocated = at_least(queue.share_allocated.get(resource, 0), "allocated")
    waiting = max(queue.share_inqueue.get(resource, 0), sum(bar.admitted - bar.allocated for bar in below))
    return Bar(
        queue=queue.name,
        resource=resource,
        guarantee=at_least(queue.guarantee.get(resource, 0), "guarantee") if root else queue.guarantee.get(resource, 0),
        deserved=total.get(resource, 0) if root else int(deserved) or sum(bar.deserved for bar in below),
        allocated=allocated,
        admitted=allocated + waiting,
        request=at_least(queue.share_request.get(resource, 0), "request"),
        capability=total.get(resource) if root else queue.capability.get(resource),
    )


def _scale(branches: list[Branch]) -> None:
    """Bars of one resource and one level share a scale, so that lengths compare."""
    widest: Counter[tuple[int, int]] = Counter()
    for branch in branches:
        for at, bar in enumerate(branch.bars):
            need = max(bar.guarantee, bar.deserved, bar.admitted, bar.capability or 0)
            widest[branch.depth, at] = max(widest[branch.depth, at], need)
    for branch in branches:
        branch.bars = [replace(bar, scale=widest[branch.depth, at]) for at, bar in enumerate(branch.bars)]


def events(queue: Queue, limit: int = 30) -> list[Event]:
    """The newest events about a queue."""
    return list(Event.objects.filter(about_uid=queue.uid, deleted_at=None).order_by("-last_seen")[:limit])
