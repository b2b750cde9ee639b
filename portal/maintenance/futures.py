"""A drain as a change of which futures are played: when those that lose all their pods are likely to start again."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cluster import objects
from cluster.kinds import NODE, POD
from cluster.port import Obj
from jobs.roles import FINISHED, phase_of
from portal.cockpit.draft import Draft, changes, resource_of
from portal.maintenance.going import Gang, look
from portal.unblock.changes import Change
from portal.unblock.copy import View


def changes_of(view: View, nodes: Sequence[str]) -> list[Change]:
    """The nodes are cordoned and pods leave them. One change a job that begins anew; the rest is about no job in particular."""
    going = view.alone(lambda: look(view, nodes))
    events = view.alone(lambda: changes(view, Draft(drain=list(nodes)), resource_of(view))).events
    anew = {key: gang for key, gang in going.gangs.items() if begins_anew(gang)}
    mine = {objects.key(pod): key for key, gang in anew.items() for pod in gang.pods}
    found = {key: Change(key, job=gang.job, stay=[pod for pod in gang.pods if objects.uid(pod) not in gang.leaving])
             for key, gang in anew.items()}  # fmt: skip
    rest = Change("")
    for event in events:
        key = mine.get(objects.key(event.object), "") if event.kind == POD else ""
        (found[key] if key else rest).events.append(event)
    assert all(event.kind in (NODE, POD) for event in rest.events)
    return [rest, *found.values()]


def begins_anew(gang: Gang) -> bool:
    """Whether a job has no pod left that runs, and starts again: of others it is said only what they lack."""
    left: Collection[str] = {objects.uid(pod) for pod in gang.pods if _runs(pod)} - set(gang.leaving)
    return gang.job is not None and gang.disruption is not None and gang.disruption.again and not left


def _runs(pod: Obj) -> bool:
    return phase_of(pod) not in FINISHED
