"""The lanes of a timeline beside the job's own and its tasks': queue, scheduler, pods, decisions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from cluster.display import number, quantity, resource_name
from jobs import reasons
from jobs.models import Job, Pod
from jobs.pages.axis import Area, Axis, Bar, Lane, Point
from jobs.pages.facts import Facts, Moment
from queues.history import divisor

CLOSE = 1.2
"""Percent of the axis within which equal decisions are drawn as one."""


def scheduler_lane(job: Job, facts: Facts, axis: Axis) -> Lane | None:
    """What held the job at which stage, and for how long."""
    bars = []
    for hold in facts.holds:
        end = hold.until
        left, right = axis.place(hold.since), axis.place(end or axis.last)
        state = "failed" if reasons.is_impossible(hold.verdict) else "pending"
        word = str(reasons.stage_label(hold.stage))
        label = f"{word}: {reasons.say(hold.verdict, job.gpu_model)}"
        bars.append(Bar(state, hold.code, hold.since, end, left, round(max(0.0, right - left), 3), word, label))
    return Lane(_("Scheduler"), bars, "scheduler") if bars else None


def queue_lane(job: Job, facts: Facts, axis: Axis) -> Lane | None:
    """What the job's queue had, against what it deserved."""
    if facts.queue is None or len(facts.queue.times) < 2:
        return None
    history = facts.queue
    had, due = history.series["allocated"], history.series["deserved"]
    rows = [
        (at, float(have or 0), None if deserved is None else float(deserved))
        for at, have, deserved in zip(history.times, had, due, strict=True)
        if axis.start <= at <= axis.end
    ]
    if len(rows) < 2:
        return None
    top = max(max(have, deserved or 0) for _at, have, deserved in rows)
    unit = divisor(history.resource)
    said = {"queue": job.queue, "resource": resource_name(history.resource), "most": quantity(int(top), history.resource)}
    note = _("%(queue)s, %(resource)s: filled is what it had, the line what it deserves; %(most)s at the top") % said
    samples = [(at, have / unit, None if deserved is None else deserved / unit) for at, have, deserved in rows]
    return Lane(_("Queue"), [], "queue", area=_area(samples, axis), note=note)


def pods_lane(job: Job, pods: Sequence[Pod], axis: Axis) -> Lane | None:
    """How many pods ran, out of the most that did or should."""
    steps: dict[datetime, int] = {}
    for pod in pods:
        if pod.started_at is None:
            continue
        alike = getattr(pod, "alike", 1)
        steps[pod.started_at] = steps.get(pod.started_at, 0) + alike
        if end := pod.finished_at or pod.deleted_at:
            steps[max(end, pod.started_at)] = steps.get(max(end, pod.started_at), 0) - alike
    if not steps:
        return None
    running, samples = 0, []
    for at in sorted(steps):
        samples.append((at, float(running), float(job.replicas)))
        running += steps[at]
        samples.append((at, float(running), float(job.replicas)))
    samples.append((max(axis.last, samples[-1][0]), float(running), float(job.replicas)))
    most = max(count for _at, count, _of in samples)
    note = _("%(most)s of %(all)s pods ran at the most") % {"most": number(most), "all": number(job.replicas)}
    return Lane(_("Pods"), [], "pods", area=_area(samples, axis), note=note)


def _area(samples: list[tuple[datetime, float, float | None]], axis: Axis) -> Area:
    """Paths in a box of 1000 by 100, time to the right and amounts upwards."""
    start, end = samples[0][0], samples[-1][0]
    span = max((end - start).total_seconds(), 0.001)
    top = max(max(value, against or 0.0) for _at, value, against in samples) or 1.0

    def at(when: datetime, value: float) -> str:
        return f"{1000 * (when - start).total_seconds() / span:.1f} {100 - 92 * value / top:.1f}"

    fill = "M0 100L" + "L".join(at(when, value) for when, value, _against in samples) + "L1000 100Z"
    due = [at(when, against) for when, _value, against in samples if against is not None]
    left, right = axis.place(start), axis.place(end)
    return Area(start, end, left, round(right - left, 3), fill, "M" + "L".join(due) if due else "", samples)


def decisions_lane(facts: Facts, axis: Axis) -> Lane:
    """What was decided when; equal decisions that would be drawn over each other are one."""
    points: list[Point] = []
    for moment in facts.moments:
        left, text = axis.place(moment.at), sentence(moment)
        last = points[-1] if points else None
        if last and last.code == moment.code and left - last.left < CLOSE:
            points[-1] = Point(last.at, last.left, last.code, text if text == last.text else f"{last.text}\n{text}")
        else:
            points.append(Point(moment.at, left, moment.code, text))
    return Lane(_("Decisions"), [], "decisions", points)


def sentence(moment: Moment) -> str:
    """A decision in words."""
    values = moment.values
    if moment.code == "bound":
        pods = ngettext("%(n)s pod bound", "%(n)s pods bound", values["pods"]) % {"n": number(values["pods"])}
        nodes = ngettext("to %(n)s node", "to %(n)s nodes", values["nodes"]) % {"n": number(values["nodes"])}
        return _("%(pods)s %(nodes)s") % {"pods": pods, "nodes": nodes}
    if moment.code in ("evicted", "made_room"):
        form = (
            ngettext("%(n)s pod evicted: %(why)s", "%(n)s pods evicted: %(why)s", values["pods"])
            if moment.code == "evicted"
            else ngettext("%(n)s pod left for this job: %(why)s", "%(n)s pods left for this job: %(why)s", values["pods"])
        )
        return form % {"n": number(values["pods"]), "why": values["why"]}
    if moment.code == "submitted":
        return _("submitted by %(who)s") % {"who": values["who"]} if values.get("who") else _("submitted")
    return {"admitted": _("admitted: it may have pods")}.get(moment.code, moment.code)
