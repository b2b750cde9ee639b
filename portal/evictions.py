"""Who had to give way to whom, for pages: evictions as rows, each side only as its viewer may know it.

Of a job that the viewer may not see a row keeps what came free, when and by which rule, and no name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, QuerySet, Value
from django.db.models.functions import Concat
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from cluster.access import policy
from cluster.display import quantity
from cluster.quantities import is_gpu
from jobs.models import Job, PodGroup
from jobs.pages.facts import Moment
from jobs.pages.rendered import in_all_languages
from portal.models import Eviction

_TEMPLATE = "portal/job_evictions.html"
SHOWN = 50
"""Rows of a table; the newest."""


@dataclass(frozen=True, slots=True)
class Party:
    """One side: `job` is a job's name (with `uid`) or a bare pod's group; all empty when it is somebody `other`."""

    job: str = ""
    uid: str = ""
    pod: str = ""
    queue: str = ""
    other: bool = False


OTHER = Party(other=True)


@dataclass(frozen=True, slots=True)
class Row:
    """One pod that left; `taker` is None when nobody in particular needed its room."""

    at: datetime
    victim: Party
    taker: Party | None
    action: str
    rules: str
    freed: str
    node: str
    proved: bool


@dataclass(frozen=True, slots=True)
class Table:
    """The newest rows, and how many there are in all."""

    rows: list[Row]
    total: int


def made_room_for(user: Any, uid: str) -> Table:
    """Pods that left for a job."""
    return _table(user, Eviction.objects.filter(preemptor_uid=uid))


def gave_way(user: Any, uid: str) -> Table:
    """Pods of a job that left."""
    return _table(user, Eviction.objects.filter(victim_job_uid=uid))


def of_queues(user: Any, names: Collection[str]) -> Table:
    """Pods that left some queues, or left for jobs of them."""
    return _table(user, Eviction.objects.filter(Q(victim_queue__in=names) | Q(preemptor_queue__in=names)))


def _table(user: Any, found: QuerySet[Eviction]) -> Table:
    newest = list(found[:SHOWN])
    total = len(newest) if len(newest) < SHOWN else found.count()
    return Table(rows(user, newest), total)


def rows(user: Any, evictions: Sequence[Eviction]) -> list[Row]:
    """Evictions as a user may see them."""
    seen = Seen(user, evictions)
    return [
        Row(
            each.at,
            seen.victim(each),
            seen.taker(each),
            action_label(each.action),
            rule_labels(each.rule),
            freed(each.freed),
            each.node,
            each.proved,
        )
        for each in evictions
    ]


class Seen:
    """Which sides of some evictions a user may know: jobs by their uid, the groups of bare pods by their key."""

    def __init__(self, user: Any, evictions: Sequence[Eviction]) -> None:
        uids = {uid for each in evictions for uid in (each.victim_job_uid, each.preemptor_uid) if uid}
        jobs = policy().visible(user, Job.objects.filter(pk__in=uids)).values_list("uid", "name")
        self._jobs = dict(jobs)
        bare = {each.victim_job for each in evictions if not each.victim_job_uid}
        bare |= {each.preemptor for each in evictions if each.preemptor and not each.preemptor_uid}
        names = {key.partition("/")[2] for key in bare}
        groups = policy().visible(user, PodGroup.objects.filter(name__in=names)) if names else PodGroup.objects.none()
        self._groups = {f"{space}/{name}" for space, name in groups.values_list("namespace", "name")}

    def victim(self, each: Eviction) -> Party:
        """Whose pod left."""
        return self._party(each.victim_job, each.victim_job_uid, each.victim, each.victim_queue)

    def taker(self, each: Eviction) -> Party | None:
        """Who needed its room."""
        if not each.preemptor:
            return None
        return self._party(each.preemptor, each.preemptor_uid, each.preemptor_pod, each.preemptor_queue)

    def _party(self, key: str, uid: str, pod: str, queue: str) -> Party:
        if uid in self._jobs:
            return Party(self._jobs[uid], uid, pod.partition("/")[2], queue)
        return Party(key, "", pod.partition("/")[2], queue) if not uid and key in self._groups else OTHER


def known(user: Any, key: str, uid: str) -> Q:
    """The same in a query: of rows with the group's key and the job's uid in these columns, those whose side a user may see."""
    jobs = policy().visible(user, Job.objects.all()).values("uid")
    groups = policy().visible(user, PodGroup.objects.annotate(key=Concat("namespace", Value("/"), "name"))).values("key")
    return Q(**{f"{uid}__in": jobs}) | Q(**{uid: "", f"{key}__in": groups})


def freed(units: dict[str, int]) -> str:
    """What came free in words, GPUs first; pods are not worth telling."""
    first = sorted(units, key=lambda name: (not is_gpu(name), name != "cpu", name != "memory", name))
    return " · ".join(quantity(units[name], name) for name in first if name != "pods" and units[name])


def action_label(action: str) -> str:
    """What was done, in a word."""
    labels = {
        "preempt": _("Preempted"),
        "gangpreempt": _("Preempted for a gang"),
        "reclaim": _("Reclaimed"),
        "gangreclaim": _("Reclaimed for a gang"),
        "shuffle": _("Moved on"),
    }
    return labels.get(action, action)


def rule_labels(rule: str) -> str:
    """The rules that let a pod go, or that asked for it, in words; unknown plugins keep their names."""
    labels = {
        "priority": _("lower priority"),
        "gang": _("beyond its gang's minimum"),
        "conformance": _("not critical"),
        "drf": _("larger share"),
        "proportion": _("beyond what its queue deserves"),
        "capacity": _("beyond what its queue deserves"),
        "pdb": _("within its disruption budget"),
        "cdp": _("past its cooldown"),
        "tdm": _("outside the hours of its node"),
        "rescheduling": _("busy node"),
        "extender": _("let go by an extender"),
    }
    return ", ".join(dict.fromkeys(labels.get(name, name) for name in rule.split("+") if name))


def moments(uid: str) -> list[Moment]:
    """What a job's timeline says of evictions: how many pods went, by which action; no names of others."""
    found: list[Moment] = []
    for code, column in (("evicted", "victim_job_uid"), ("made_room", "preemptor_uid")):
        rows = Eviction.objects.filter(**{column: uid}).order_by().values("at", "action").annotate(pods=Count("pk"))
        found += [
            Moment(row["at"], code, {"pods": row["pods"], "why": action_label(row["action"])})
            for row in rows.order_by("-at")[:SHOWN]
        ]
    return found


def part(user: Any, uid: str) -> dict[str, Any]:
    """The section of a job's page, as the live channel carries parts of it."""
    return {"uid": "evictions", "html": in_all_languages(_TEMPLATE, lambda: _of_job(user, uid))}


def html(user: Any, uid: str) -> str:
    """The section in the active language; empty when the job has no part in any eviction."""
    return render_to_string(_TEMPLATE, _of_job(user, uid))


def _of_job(user: Any, uid: str) -> dict[str, Any]:
    return {"made_room": made_room_for(user, uid), "gave_way": gave_way(user, uid)}
