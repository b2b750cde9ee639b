"""What a draft asks, and what that means for its queue, its namespace and the machines as they are. Facts, no promise of a start.

Pages and REST are told by this one function; what is refused outright is refused by admission, before this is asked.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _

from cluster import runtime
from cluster.access import policy
from cluster.capacity import Fits
from cluster.capacity import summary as capacity_summary
from cluster.display import quantity, short_model
from cluster.errors import ApiError
from cluster.kinds import PRIORITY_CLASS
from cluster.models import HyperNode, Node
from cluster.objects import is_gpu, pod_requests
from cluster.port import Obj
from cluster.templatetags.topology import tier_word
from jobs.admission import SYSTEM_CLASSES, priority_of
from jobs.submit.limits import namespace_notes
from jobs.submit.machines import Ask, machine_notes
from jobs.submit.notes import Note
from queues.models import Queue
from queues.queries import Bar, Branch, capacity, queues, tree
from queues.tree import ROOT


@dataclass(slots=True)
class Preview:
    """Sums over all pods in smallest units, the queue now and after, and notes."""

    pods: int = 0
    minimum: int = 0
    total: Counter[str] = field(default_factory=Counter)
    least: Counter[str] = field(default_factory=Counter)
    queue: str = ""
    resource: str = ""
    bars: list[tuple[str, Bar]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    @property
    def sums(self) -> list[tuple[str, int]]:
        """What all pods ask together."""
        return [(name, units) for name, units in self.total.items() if units and name != "pods"]

    @property
    def impossible(self) -> bool:
        return any(note.kind == "bad" for note in self.notes)

    def as_list(self) -> list[dict[str, str]]:
        """The notes for programs."""
        return [note.as_dict() for note in self.notes]


def preview(user: Any, job: Obj) -> Preview:
    """Look at an admitted job, in a constant number of queries."""
    spec = job["spec"]
    found = Preview(minimum=int(spec.get("minAvailable") or 0), queue=spec.get("queue") or "default")
    asks = list(_asks(spec))
    for ask in asks:
        found.pods += ask.count
        found.total.update({name: units * ask.count for name, units in ask.requests.items()})
        found.least.update({name: units * ask.least for name, units in ask.requests.items()})
    gpus = next((name for name in found.total if is_gpu(name)), None)
    found.resource = gpus or "cpu"
    found.notes += _of_priority(spec)
    found.notes += _of_queue(user, found)
    found.notes += namespace_notes(runtime.current(), job, found.least)
    found.notes += machine_notes(asks, found.total[gpus] if gpus and not found.impossible else 0)
    return found


def _asks(spec: Obj) -> Iterator[Ask]:
    for index, task in enumerate(spec["tasks"]):
        pod = task["template"]["spec"]
        count = int(task.get("replicas") or 0)
        least = task.get("minAvailable")
        yield Ask(index, task["name"], count, count if least is None else int(least), pod, pod_requests(pod))


def _of_priority(spec: Obj) -> Iterator[Note]:
    name = spec.get("priorityClassName")
    try:
        known = not name or priority_of(name, runtime.current()) is not None
    except ApiError:
        return
    if not known:
        text = _("There is no priority class %(name)s: it counts as 0 until there is.") % {"name": name}
        yield Note("warn", text, "/spec/priorityClassName")


def _of_queue(user: Any, found: Preview) -> Iterator[Note]:
    resources = [found.resource, *(name for name in found.total if name not in (found.resource, "pods"))]
    branches = {each.queue.name: each for each in tree(queues(user), resources, capacity())}
    branch = branches.get(found.queue)
    if branch is None:
        return
    asked = found.total[found.resource]
    written = branch.queue.deserved.get(found.resource, 0)  # what the scheduler computes would grow with this job's request
    now = replace(branch.bars[0], deserved=written)
    full = max(now.scale, now.admitted + asked)
    now = replace(now, scale=full)
    after = replace(now, allocated=now.allocated + asked, admitted=now.admitted + asked)
    found.bars = [(_("now"), now), (_("after"), after)]
    limits = list(_of_limits(found, _upwards(branches, branch)))
    yield from limits
    if not limits and after.borrowed and asked:
        values = {"queue": found.queue, "borrowed": quantity(min(asked, after.borrowed), found.resource)}
        text = _("%(queue)s would borrow %(borrowed)s, which others may reclaim.") % values
        yield Note("warn", text, "/spec/queue")


def _upwards(branches: dict[str, Branch], branch: Branch) -> Iterator[Branch]:
    """The queue and those above it, but for the root, which holds the whole cluster."""
    seen: set[str] = set()
    at: Branch | None = branch
    while at is not None and at.queue.name not in seen and at.queue.name != ROOT:
        seen.add(at.queue.name)
        yield at
        at = branches.get(at.queue.parent or "")


def _of_limits(found: Preview, line: Iterator[Branch]) -> Iterator[Note]:
    """Every resource and every queue of the line whose capability the gang, or with it the whole job, does not fit into."""
    for branch in line:
        for bar in branch.bars:
            if bar.capability is None:
                continue
            resource, limit = bar.resource, bar.capability
            least, total = found.least[resource], found.total[resource]
            free = max(0, limit - bar.admitted)
            values = {"queue": branch.queue.name, "limit": quantity(limit, resource), "free": quantity(free, resource)}
            if least > limit:
                values["asked"] = quantity(least, resource)
                yield Note("bad", _("Asks %(asked)s; %(queue)s may never hold more than %(limit)s.") % values, "/spec/queue")
            elif total > limit:
                values["asked"] = quantity(total, resource)
                text = _("All its pods ask %(asked)s; %(queue)s may never hold more than %(limit)s: some of them wait for ever.")
                yield Note("warn", text % values, "/spec/queue")
            elif least > free:
                text = _("%(queue)s has %(free)s left below its capability: the job will wait.") % values
                yield Note("warn", text, "/spec/queue")


def models() -> list[tuple[str, str]]:
    """The GPU models that nodes have, as (label value, short name)."""
    names = Node.objects.filter(deleted_at=None).exclude(gpu_model="").order_by("gpu_model").values_list("gpu_model", flat=True)
    return [(name, short_model(name)) for name in names.distinct()]


_classes: tuple[float, object, list[tuple[str, str]]] = (0.0, None, [])
_KEPT = 20.0
"""Wall seconds for which the classes are not asked for again: they hardly ever change, and every list offers them."""


def tiers() -> list[tuple[str, str]]:
    """The tiers of the network that jobs may stay within, the nearest first, by the name that their domains have."""
    rows = HyperNode.objects.filter(deleted_at=None).order_by("tier").values_list("tier", "tier_name").distinct()
    found: dict[int, str] = {}
    for tier, name in rows:
        found[tier] = name or found.get(tier, "")
    return [
        (str(tier), _("%(name)s (tier %(tier)s)") % {"name": tier_word(name), "tier": tier} if name else str(tier))
        for tier, name in found.items()
    ]


_fits: dict[str, tuple[float, tuple[Fits, ...]]] = {}
_HINT = 5.0
"""Wall seconds for which the hint is not worked out again: it is redrawn at each change of the YAML."""


def fits(user: Any) -> list[tuple[str, int]]:
    """GPUs of the largest gang that fits now, by tier: one node, a rack and so on; empty where nobody knows."""
    rights = policy().rights(user)
    until, found = _fits.get(rights, (0.0, ()))
    if time.monotonic() > until:
        summary = capacity_summary(user)
        found = summary.tiers if summary is not None else ()
        _fits.clear()
        _fits[rights] = (time.monotonic() + _HINT, found)
    return [(tier_word(each.label), each.gpus) for each in found if each.gpus]


def priorities() -> list[tuple[str, str]]:
    """The priority classes that people may choose, the highest first, each with its value; none where they cannot be read."""
    global _classes
    until, cluster, found = _classes
    if time.monotonic() > until or cluster is not runtime.current_or_none():
        found = _read_priorities()
        _classes = (time.monotonic() + _KEPT, runtime.current_or_none(), found)
    return found


def _read_priorities() -> list[tuple[str, str]]:
    try:
        classes = runtime.current().list(PRIORITY_CLASS).items
    except ApiError:
        return []
    known = [(each["metadata"]["name"], int(each.get("value") or 0)) for each in classes]
    chosen = sorted((each for each in known if each[0] not in SYSTEM_CLASSES), key=lambda each: (-each[1], each[0]))
    return [(name, f"{name} ({value})") for name, value in chosen]


def offered_queues(user: Any) -> list[str]:
    """Open leaf queues, which are those that take jobs."""
    rows = policy().visible(user, Queue.objects.filter(deleted_at=None)).order_by("name").values_list("name", "parent", "state")
    parents = {parent for _name, parent, _state in rows}
    return [name for name, _parent, state in rows if state == "Open" and name not in parents and name != ROOT]
