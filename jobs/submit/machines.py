"""Whether any machine could ever take a job's pods, and all machines together its gang; and how many GPUs are free now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from cluster.display import number, quantity
from cluster.models import Node
from cluster.objects import is_gpu, matches_node, untolerated
from cluster.port import Obj
from cluster.workloads import current
from jobs.submit.fields import GPU
from jobs.submit.notes import Note, amount_of

COLUMNS = ("name", "labels", "taints", "allocatable", "cordoned")


@dataclass(frozen=True, slots=True)
class Ask:
    """One task: its place, its name, how many pods, how many at least, the pod's spec and what it requests."""

    index: int
    task: str
    count: int
    least: int
    pod: Obj
    requests: dict[str, int]


Machine = tuple[str, dict[str, int], bool]
"""A node's name, what it can give, and whether it is cordoned."""


def machine_notes(asks: Sequence[Ask], total_gpus: int) -> list[Note]:
    """In one query, and one for what is in use."""
    rows = list(Node.objects.filter(deleted_at=None, ready=True).values_list(*COLUMNS))
    if not rows:
        return [Note("warn", _("No machine is ready: the job will wait for one."))]
    found: list[Note] = []
    for ask in asks:
        if ask.count:
            found += _of_task(ask, rows)
    if not found and total_gpus:
        found.append(_room(total_gpus // 1000, rows))
    return found


def _of_task(ask: Ask, rows: Sequence[Any]) -> Iterator[Note]:
    machines = [
        (name, allocatable, cordoned)
        for name, labels, taints, allocatable, cordoned in rows
        if matches_node(ask.pod, labels, name) and not untolerated(ask.pod.get("tolerations"), taints)
    ]
    if not machines:
        yield from _nowhere(ask)
        return
    too_large = list(_largest(ask, machines))
    yield from too_large
    if too_large or ask.least < 2:
        return
    most = sum(_copies(ask.requests, allocatable, ask.least) for _name, allocatable, _cordoned in machines)
    if most < ask.least:
        values = {"task": ask.task, "most": number(most), "least": number(ask.least)}
        text = _("All machines together could hold %(most)s pods of task %(task)s; the gang needs %(least)s.") % values
        yield Note("bad", text, f"/spec/tasks/{ask.index}/replicas")


def _nowhere(ask: Ask) -> Iterator[Note]:
    selects = ask.pod.get("nodeSelector") or (ask.pod.get("affinity") or {}).get("nodeAffinity")
    field = "nodeSelector" if selects else "tolerations"
    text = _("No machine fits what task %(task)s selects or tolerates.") % {"task": ask.task}
    yield Note("bad", text, f"/spec/tasks/{ask.index}/template/spec/{field}")


def _largest(ask: Ask, machines: Sequence[Machine]) -> Iterator[Note]:
    """What no machine has as much of as a pod asks, with the machine that has most."""
    wanted = {name: units for name, units in ask.requests.items() if units}
    if any(all(allocatable.get(name, 0) >= units for name, units in wanted.items()) for _n, allocatable, _c in machines):
        return
    short = [name for name, units in wanted.items() if all(allocatable.get(name, 0) < units for _n, allocatable, _c in machines)]
    if not short:
        text = _("No single machine has all that a pod of task %(task)s asks.") % {"task": ask.task}
        yield Note("bad", text, f"/spec/tasks/{ask.index}/template/spec")
    for resource in sorted(short, key=lambda each: not is_gpu(each)):
        node, allocatable, _cordoned = max(machines, key=lambda machine: (machine[1].get(resource, 0), machine[0]))
        largest = allocatable.get(resource, 0)
        values = {"task": ask.task, "asked": quantity(wanted[resource], resource), "node": node}
        if largest:
            values["largest"] = quantity(largest, resource)
            text = _("A pod of task %(task)s asks %(asked)s; the largest machine for it, %(node)s, has %(largest)s.") % values
        else:
            text = _("A pod of task %(task)s asks %(asked)s; no machine that it may use has any.") % values
        yield Note("bad", text, amount_of(ask.index, ask.pod, resource))


def _copies(requests: Mapping[str, int], allocatable: Mapping[str, int], most: int) -> int:
    """How many such pods an empty machine holds, as far as it matters."""
    return min([most, *(allocatable.get(name, 0) // units for name, units in requests.items() if units)])


def _room(asked: int, rows: Sequence[Any]) -> Note:
    usage = current().usage()
    free = 0
    for name, _labels, _taints, allocatable, cordoned in rows:
        if not cordoned:
            used = usage[name].requests.get(GPU, 0) if name in usage else 0
            free += max(0, allocatable.get(GPU, 0) - used) // 1000
    values = {"asked": asked, "free": free}
    if asked <= free:
        text = ngettext("Asks %(asked)s GPU; %(free)s are free now.", "Asks %(asked)s GPUs; %(free)s are free now.", asked)
        return Note("ok", text % values)
    text = ngettext(
        "Asks %(asked)s GPU; %(free)s are free now. Not all of it fits.",
        "Asks %(asked)s GPUs; %(free)s are free now. Not all of it fits.",
        asked,
    )
    return Note("warn", text % values)
