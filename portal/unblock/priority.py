"""Another priority for a waiting job: whom it passes and who has to give way, looked at before it is set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cluster import runtime
from cluster.errors import BadRequest, Conflict, FieldError, Unavailable
from cluster.kinds import JOB
from cluster.port import Obj
from cluster.projection import Batch
from cluster.said import said, words
from jobs.bulk.impact import Impact
from jobs.choices import JobPhase
from jobs.models import Job
from jobs.operations import MANAGER
from jobs.projection import project_jobs
from jobs.roles import told_phase
from portal.outlook import questions
from portal.outlook import shown as foretold
from portal.outlook.questions import Question
from portal.unblock import changes
from portal.unblock.copy import View, current
from portal.unblock.shown import Names, evicted_json, places_json
from portal.unblock.trial import places
from portal.unblock.ways import SYSTEM
from scheduler.whatif import compare

Json = dict[str, Any]
MOST = 200
"""Jobs that are named of those that are passed."""


def classes(view: View) -> list[tuple[str, int]]:
    """What a user may choose: every class but the system's own, the lowest first."""
    return [each for each in view.made.known_classes() if not each[0].startswith(SYSTEM)]


def question(jobs: Sequence[tuple[str, str]], name: str) -> Question:
    """How starts move when these waiting jobs get a priority class together."""
    return questions.patched(jobs, {"spec": {"priorityClassName": name}})


def preview(user: Any, job: Job, name: str) -> Json:
    """What happens when the job gets a priority class. Raises BadRequest, Conflict if it does not wait."""
    with current().pinned() as view:
        manifest = view.job(job.namespace, job.name)
        value = dict(classes(view)).get(name)
        if value is None:
            known = ", ".join(each for each, _value in classes(view)) or "none"
            raise BadRequest(
                said("there is no priority class %(name)r for you; there are %(known)s", name=name, known=known),
                [FieldError("?class", said("is unknown"), "choice")],
            )
        if manifest is None or (group := view.gang(manifest)) is None or group.ready_count():
            raise Conflict(said("job %(job)s does not wait: its place in the line cannot be changed", job=job))
        change = changes.in_place(view, manifest, {"spec": {"priorityClassName": name}})
        played = view.play(change.events, extra=lambda uid: change.pods(view, uid))
        told = compare(view.baseline, played)
        lines = [[uid for uid in each.line if uid not in each.started or uid == group.uid] for each in (view.baseline, played)]
        ahead = [set(line[: line.index(group.uid)]) if group.uid in line else set(line) for line in lines]
        passed = [uid for uid in lines[0] if uid in ahead[0] - ahead[1]]
        lets_pass = [uid for uid in lines[0] if uid in ahead[1] - ahead[0]]
        binds = played.binds.get(group.uid, [])
        names = Names(user, {*passed[:MOST], *lets_pass[:MOST], *told.delayed, *(each.victim_job for each in told.evicted)})
        return {
            "from": group.priority,
            "to": value,
            "class": name,
            "place": {"from": _place(lines[0], group.uid), "to": _place(lines[1], group.uid), "of": len(lines[0])},
            "starts": change.uid in played.started,
            "places": places_json(places(binds)),
            "overtakes": [names.as_json(uid) for uid in passed[:MOST]],
            "overtakes_total": len(passed),
            "overtaken_by": [names.as_json(uid) for uid in lets_pass[:MOST]],
            "overtaken_by_total": len(lets_pass),
            "delayed": [names.as_json(uid) for uid in told.delayed if uid != group.uid],
            "evicted": evicted_json(names, told.evicted),
            "snapshot": {"version": view.version, "age_seconds": round(view.age, 1)},
        }


def impact(user: Any, jobs: Sequence[tuple[str, str]], name: str) -> Impact:
    """What happens when these waiting jobs get a priority class together; jobs that were given nodes meanwhile are left out."""
    try:
        with current().pinned() as view:
            return _impact(user, view, jobs, name)
    except Unavailable as error:
        return Impact(error=words(error.message))


def _impact(user: Any, view: View, jobs: Sequence[tuple[str, str]], name: str) -> Impact:
    events, mine = [], set()
    for namespace, title in jobs:
        manifest = view.job(namespace, title)
        group = view.gang(manifest) if manifest is not None else None
        if manifest is None or group is None or group.ready_count():
            continue
        change = changes.in_place(view, manifest, {"spec": {"priorityClassName": name}})
        mine.add(change.uid)
        events += change.events
    if not mine:
        return Impact()
    played = view.play(events)
    told = compare(view.baseline, played)
    before, after = ([uid for uid in each.line if uid not in each.started] for each in (view.baseline, played))
    overtaken = [uid for uid in _overtaken(before, after, mine) if uid not in told.delayed]
    delayed = [uid for uid in told.delayed if uid not in mine]
    starts = [uid for uid in told.starts if uid in mine]
    names = Names(user, {*overtaken[:MOST], *delayed, *starts, *(each.victim_job for each in told.evicted)})
    return Impact(
        tried=len(mine),
        starts=[names.as_json(uid) for uid in starts],
        delayed=[names.as_json(uid) for uid in delayed],
        evicted=evicted_json(names, told.evicted),
        overtaken=[names.as_json(uid) for uid in overtaken[:MOST]],
        overtaken_total=len(overtaken),
        question=(asked := question(jobs, name)),
        foretell=lambda: foretold.as_json(user, asked),
    )


def _overtaken(before: list[str], after: list[str], mine: set[str]) -> list[str]:
    """Others that have more of these jobs ahead of them than before."""
    ahead = [dict[str, int](), dict[str, int]()]
    for found, line in zip(ahead, (before, after), strict=True):
        count = 0
        for uid in line:
            found[uid] = count
            count += uid in mine
    return [uid for uid in before if uid not in mine and ahead[1].get(uid, 0) > ahead[0][uid]]


def _place(line: list[str], uid: str) -> int:
    return line.index(uid) + 1 if uid in line else 0


def set_class(job: Job, name: str) -> Obj:
    """Set it. Raises Conflict when the job does not wait any more, BadRequest for the system's classes, Invalid."""
    if name.startswith(SYSTEM):
        raise BadRequest(
            said("%(name)s is the system's own", name=name),
            [FieldError("/class", said("names that begin with 'system-' are Kubernetes's own"), "forbidden")],
        )
    return change(job, {"spec": {"priorityClassName": name}})


def change(job: Job, patch: Obj) -> Obj:
    """Change a waiting job in place, and show it at once. Raises what the port does; Conflict when it does not wait."""
    cluster = runtime.current()
    stored = cluster.get(JOB, job.name, job.namespace)
    if stored["metadata"]["uid"] != job.uid or told_phase(stored) != JobPhase.PENDING:
        raise Conflict(
            said("job %(namespace)s/%(name)s does not wait any more: nothing was changed", namespace=job.namespace, name=job.name)
        )
    body = {**patch, "metadata": {"resourceVersion": stored["metadata"]["resourceVersion"]}}
    obj = cluster.patch(JOB, job.name, job.namespace, body, field_manager=MANAGER)
    project_jobs(Batch(upserts=[obj]))
    return obj
