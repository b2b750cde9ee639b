"""What a draft asks, and what that means for its queue and for the machines as they are now. Facts, no promise of a start."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from cluster.access import policy
from cluster.display import quantity, short_model
from cluster.models import Node
from cluster.objects import is_gpu, matches_node, pod_requests, untolerated
from cluster.port import Obj
from cluster.workloads import current
from jobs.submit.fields import GPU
from queues.queries import Bar, capacity, queues, tree


@dataclass(frozen=True, slots=True)
class Note:
    """One thing to know: `kind` is ok, warn or bad."""

    kind: str
    text: str


@dataclass(slots=True)
class Preview:
    """Sums over all pods in smallest units, the queue now and after, and notes."""

    pods: int = 0
    minimum: int = 0
    total: Counter[str] = field(default_factory=Counter)
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


def preview(user: Any, job: Obj) -> Preview:
    """Look at an admitted job, in four queries."""
    spec = job["spec"]
    found = Preview(minimum=int(spec.get("minAvailable") or 0), queue=spec.get("queue") or "default")
    asks = []
    for task in spec["tasks"]:
        pod = task["template"]["spec"]
        count = int(task.get("replicas") or 0)
        requests = pod_requests(pod)
        asks.append((task["name"], count, pod, requests))
        found.pods += count
        found.total.update({name: units * count for name, units in requests.items()})
    gpus = next((name for name in found.total if is_gpu(name)), None)
    found.resource = gpus or "cpu"
    _queue(user, found)
    _machines(found, asks)
    return found


def _queue(user: Any, found: Preview) -> None:
    rows = queues(user)
    branch = next((each for each in tree(rows, [found.resource], capacity()) if each.queue.name == found.queue), None)
    if branch is None:
        return
    asked = found.total[found.resource]
    written = branch.queue.deserved.get(found.resource, 0)  # what the scheduler computes would grow with this job's request
    now = replace(branch.bars[0], deserved=written)
    full = max(now.scale, now.admitted + asked)
    now = replace(now, scale=full)
    after = replace(now, allocated=now.allocated + asked, admitted=now.admitted + asked)
    found.bars = [(_("now"), now), (_("after"), after)]
    values = {"queue": found.queue}
    if now.capability is not None and asked > now.capability:
        values |= {"asked": quantity(asked, found.resource), "limit": quantity(now.capability, found.resource)}
        found.notes.append(Note("bad", _("Asks %(asked)s; %(queue)s may never hold more than %(limit)s.") % values))
    elif now.capability is not None and after.admitted > now.capability:
        free = max(0, now.capability - now.admitted)
        values["free"] = quantity(free, found.resource)
        found.notes.append(Note("warn", _("%(queue)s has %(free)s left below its capability: the job will wait.") % values))
    elif after.borrowed and asked:
        values["borrowed"] = quantity(min(asked, after.borrowed), found.resource)
        found.notes.append(Note("warn", _("%(queue)s would borrow %(borrowed)s, which others may reclaim.") % values))


def _machines(found: Preview, asks: list[tuple[str, int, Obj, dict[str, int]]]) -> None:
    """Whether any machine could ever take each task's pod, and how many GPUs are free now."""
    columns = ("name", "labels", "taints", "allocatable", "gpu_model", "cordoned")
    nodes = list(Node.objects.filter(deleted_at=None, ready=True).values_list(*columns))
    for task, count, pod, requests in asks:
        if not count:
            continue
        open_to = [
            (name, allocatable, model)
            for name, labels, taints, allocatable, model, _cordoned in nodes
            if matches_node(pod, labels, name) and not untolerated(pod.get("tolerations"), taints)
        ]
        if not nodes:
            found.notes.append(Note("warn", _("No machine is ready: the job will wait for one.")))
            return
        if not open_to:
            found.notes.append(Note("bad", _("No machine fits what task %(task)s selects or tolerates.") % {"task": task}))
        else:
            _largest(found, task, requests, open_to)
    _room(found, nodes)


def _largest(found: Preview, task: str, requests: dict[str, int], nodes: list[tuple[str, dict[str, int], str]]) -> None:
    if any(all(allocatable.get(name, 0) >= units for name, units in requests.items()) for _name, allocatable, _model in nodes):
        return
    short = [name for name, units in requests.items() if all(allocatable.get(name, 0) < units for _n, allocatable, _m in nodes)]
    if not short:
        found.notes.append(Note("bad", _("No single machine has all that a pod of task %(task)s asks.") % {"task": task}))
    for name in short:
        largest = max(allocatable.get(name, 0) for _n, allocatable, _m in nodes)
        values = {"task": task, "asked": quantity(requests[name], name), "largest": quantity(largest, name)}
        text = _("A pod of task %(task)s asks %(asked)s; the largest machine for it has %(largest)s.") % values
        found.notes.append(Note("bad", text))


def _room(found: Preview, nodes: list[tuple[Any, ...]]) -> None:
    asked = found.total[GPU] // 1000
    if not asked or found.impossible:
        return
    usage = current().usage()
    free = 0
    for name, _labels, _taints, allocatable, _model, cordoned in nodes:
        if not cordoned:
            used = usage[name].requests.get(GPU, 0) if name in usage else 0
            free += max(0, allocatable.get(GPU, 0) - used) // 1000
    values = {"asked": asked, "free": free}
    if asked <= free:
        text = ngettext("Asks %(asked)s GPU; %(free)s are free now.", "Asks %(asked)s GPUs; %(free)s are free now.", asked)
        found.notes.append(Note("ok", text % values))
    else:
        text = ngettext(
            "Asks %(asked)s GPU; %(free)s are free now. It will wait.",
            "Asks %(asked)s GPUs; %(free)s are free now. It will wait.",
            asked,
        )
        found.notes.append(Note("warn", text % values))


def models() -> list[tuple[str, str]]:
    """The GPU models that nodes have, as (label value, short name)."""
    names = Node.objects.filter(deleted_at=None).exclude(gpu_model="").order_by("gpu_model").values_list("gpu_model", flat=True)
    return [(name, short_model(name)) for name in names.distinct()]


def offered_queues(user: Any) -> list[str]:
    """Open leaf queues, which are those that take jobs."""
    rows = queues(user)
    parents = {row.parent for row in rows}
    return [row.name for row in rows if row.state == "Open" and row.name not in parents and row.name != "root"]


def may_submit(user: Any) -> bool:
    """Whether the user may submit at all."""
    return policy().may(user, "jobs.submit")
