"""Was an eviction needed? Pods that went together for the same taker are one row, with what is known of it since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext as _

from cluster.quantities import is_gpu
from jobs.models import Job
from portal.evictions import Party, Seen, action_label, freed, rule_labels
from portal.models import Eviction

GRACE = timedelta(minutes=2)
"""For so long a taker may take to start before its victims count as lost for nothing."""
READ = 400
"""Pods that a table reads at most; the newest."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is said of an eviction: `exact` (proved to be the smallest set), `minimal` (none could be spared), `wasted`."""

    code: str
    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class Group:
    """Pods of one job that went together: `pods` of them, `freed` in words; `gpus` is how many whole GPUs came free."""

    at: datetime
    cycle: int
    victim: Party
    taker: Party | None
    action: str
    action_label: str
    rules: str
    pods: int
    freed: str
    gpus: float
    node: str
    judgement: Judgement


def wasted(found: QuerySet[Eviction], present: datetime) -> QuerySet[Eviction]:
    """Of some evictions those whose taker, a job, has not started since, though it had the time."""
    started = Job.objects.filter(started_at__gte=F("created_at"))
    known = found.filter(at__lt=present - GRACE).exclude(preemptor_uid="")
    takers = set(known.order_by().values_list("preemptor_uid", flat=True).distinct())
    starts = dict(started.filter(pk__in=takers, started_at__isnull=False).values_list("uid", "started_at"))
    lost = Q(preemptor_uid__in=takers - starts.keys())
    for uid, at in starts.items():
        lost |= Q(preemptor_uid=uid, at__gt=at)
    return known.filter(lost).exclude(preemptor_uid__in=_runs_again(takers))


def _runs_again(uids: set[str]) -> list[str]:
    """Jobs that run now, whenever they first started."""
    return list(Job.objects.filter(pk__in=uids, deleted_at=None, running__gt=0).values_list("uid", flat=True))


def groups(user: Any, evictions: Sequence[Eviction], present: datetime) -> list[Group]:
    """Evictions as a user may see them, pods that went together in one row, in the order given."""
    seen = Seen(user, evictions)
    keys = [each.pk for each in evictions]
    lost = set(wasted(Eviction.objects.filter(pk__in=keys), present).values_list("pk", flat=True)) if keys else set()
    together: dict[tuple[Any, ...], list[Eviction]] = {}
    for each in evictions:
        together.setdefault((each.at, each.cycle, each.victim_job, each.preemptor, each.action, each.rule), []).append(each)
    return [_group(seen, pods, lost) for pods in together.values()]


def _group(seen: Seen, pods: Sequence[Eviction], lost: set[int]) -> Group:
    first, units = pods[0], Counter[str]()
    for each in pods:
        units.update(each.freed)
    nodes = {each.node for each in pods}
    return Group(
        first.at, first.cycle, seen.victim(first), seen.taker(first), first.action, action_label(first.action),
        rule_labels(first.rule), len(pods), freed(dict(units)),
        sum(amount for name, amount in units.items() if is_gpu(name)) / 1000,
        nodes.pop() if len(nodes) == 1 else "", judged(pods, lost),
    )  # fmt: skip


def judged(pods: Iterable[Eviction], lost: set[int]) -> Judgement:
    """What is known of pods that went together."""
    pods = list(pods)
    if any(each.pk in lost for each in pods):
        return Judgement("wasted", "failed", _("Wasted: who needed the room did not start"))
    if all(each.proved for each in pods):
        return Judgement("exact", "completed", _("Exact: no smaller set would have done"))
    return Judgement("minimal", "pending", _("None could be spared; a smaller set is not ruled out"))


def table(user: Any, kind: str, present: datetime) -> list[Group]:
    """The newest evictions: all, of one action (`preempt` and `reclaim` include those for gangs), or those that are `flagged`."""
    found = Eviction.objects.all()
    if kind in ("preempt", "reclaim"):
        found = found.filter(action__endswith=kind)
    elif kind == "flagged":
        found = wasted(found, present) | found.filter(proved=False)
    return groups(user, list(found[:READ]), present)


def counts(since: datetime, present: datetime) -> dict[str, int]:
    """Pods evicted since, those of them not proved to be the smallest set, and those for nothing."""
    found = Eviction.objects.filter(at__gt=since)
    return {"pods": found.count(), "unproved": found.filter(proved=False).count(), "wasted": wasted(found, present).count()}
