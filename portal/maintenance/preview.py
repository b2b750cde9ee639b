"""What a drain of some nodes would do, as its viewer may know it: one function feeds the page, REST and the command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cluster import objects
from cluster.access import policy
from cluster.models import Node
from jobs import reasons
from jobs.models import Job, Pod
from portal.cockpit import what_if
from portal.cockpit.draft import Draft
from portal.maintenance import acts, rights, words
from portal.maintenance.going import Budget, Gang, Going, Leaver, look
from portal.unblock.copy import current
from portal.unblock.shown import Names, in_languages

Json = dict[str, Any]
SHOWN = 500
"""Pods that are listed one by one."""


@dataclass(slots=True)
class GangLine:
    """What becomes of one job: `out` pods leave, of which `back` are placed again at once; `places` are pods by node.

    `job` is None where the viewer may not see it; `pods` of it are evicted. `is_ours`: a Job of ours is behind it.
    """

    gang: Gang
    job: Job | None
    name: str
    pods: int
    out: int
    back: int
    places: list[tuple[str, int]]
    why: dict[str, Any] | None

    @property
    def is_ours(self) -> bool:
        return self.gang.disruption is not None

    @property
    def standing(self) -> str:
        """Whether the gang stays complete, in words. Tasks of a hidden job are not named."""
        return words.gang(self.gang.disruption, names=self.job is not None) if self.gang.disruption is not None else ""

    @property
    def consequence(self) -> str:
        """What its policies do, in words."""
        return words.consequence(self.gang.disruption, self.pods) if self.gang.disruption is not None else ""

    @property
    def maybe(self) -> list[str]:
        """What may come on top."""
        return words.maybe(self.gang.disruption) if self.gang.disruption is not None else []

    @property
    def waits(self) -> str:
        """Why not all of it starts again at once, as the scheduler says it; empty where it does, nobody says, or it is hidden."""
        return reasons.say(self.why) if self.why and self.job is not None and self.back < self.out else ""

    @property
    def is_bad(self) -> bool:
        """Whether it deserves a second look."""
        found = self.gang.disruption
        return found is not None and (found.is_below or found.fails or not found.again)


@dataclass(slots=True)
class PodLine:
    """One pod, as it may be shown; what it belongs to, and what keeps it."""

    leaver: Leaver
    job: Job | None
    budgets: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return objects.key(self.leaver.pod)

    @property
    def why_stays(self) -> str:
        """In words; empty for one that goes."""
        return words.stays(self.leaver.stay.value) if self.leaver.stay is not None else ""

    @property
    def owner(self) -> str:
        """Kind and name of what makes it."""
        owner = objects.owner(self.leaver.pod)
        return f"{owner.get('kind')} {owner.get('name')}" if owner is not None else ""


@dataclass(slots=True)
class Preview:
    """Everything at one instant. `hidden` pods belong to what the viewer may not see; they are counted with the others.

    `going`, `bare`, `local_data` and `foreign` are pods that go: all, those that nobody makes again, those that lose data,
    those of another scheduler. `others` are counts of what happens to everybody else.
    """

    nodes: Sequence[Node]
    pods: list[PodLine]
    gangs: list[GangLine]
    budgets: list[Budget]
    several: int
    going: int
    bare: int
    local_data: int
    foreign: int
    staying: Counter[str]
    hidden: int
    lacking: tuple[str, ...]
    taken: list[tuple[str, str, str]]
    others: Json
    age: float
    settled: bool

    @property
    def below(self) -> int:
        """Gangs that fall below their minimum."""
        return sum(each.gang.disruption is not None and each.gang.disruption.is_below for each in self.gangs)

    @property
    def unplaced(self) -> int:
        """Gangs of which not every pod that leaves is placed again at once, though it is made again."""
        return sum(each.back < each.out and (each.gang.disruption is None or each.gang.disruption.again) for each in self.gangs)

    @property
    def blocking(self) -> list[Budget]:
        """Budgets that keep some pods, at least for a while."""
        return [each for each in self.budgets if each.blocks]

    @property
    def owners(self) -> list[tuple[str, int]]:
        """Whose jobs lose pods, most first; jobs that the viewer may not see are nobody's."""
        found: Counter[str] = Counter()
        for each in self.gangs:
            if each.job is not None and each.job.owner:
                found[each.job.owner] += each.pods
        return found.most_common()


def preview(user: Any, names: Collection[str]) -> Preview:
    """Ask what a drain of these nodes would do. Raises what `acts.chosen` raises, and Unavailable."""
    nodes = acts.chosen(user, names)
    draft = Draft(drain=[node.name for node in nodes])
    with current().pinned() as view:
        going = view.alone(lambda: look(view, draft.drain))
        found = what_if.ask(view, draft)
        age = view.age
    under_way = acts.under_way(draft.drain).select_related("drain")
    return _made(user, nodes, going, found, age, [(row.node, str(row.drain_id), row.drain.user) for row in under_way])


def _made(
    user: Any, nodes: Sequence[Node], going: Going, found: what_if.Outcome | None, age: float, taken: list[tuple[str, str, str]]
) -> Preview:
    names = Names(user, going.gangs)
    seen = visible(user, [objects.uid(each.pod) for each in going.pods])
    shown = [each for each in going.pods if objects.uid(each.pod) in seen]
    evicted = going.evicted
    others = found.preview if found is not None else None
    return Preview(
        nodes=nodes,
        pods=[PodLine(each, names.job(each.group)) for each in sorted(shown, key=_order)[:SHOWN]],
        gangs=sorted(_gangs(names, going, found), key=lambda line: (not line.is_bad, -line.out, line.name)),
        budgets=_budgets(going, seen),
        several=len(going.several),
        going=len(evicted),
        bare=sum(each.is_bare for each in evicted),
        local_data=sum(each.has_local_data for each in evicted),
        foreign=sum(bool(each.foreign) for each in evicted),
        staying=Counter(each.stay.value for each in going.pods if each.stay is not None),
        hidden=len(going.pods) - len(shown),
        lacking=rights.missing(),
        taken=taken,
        others={
            "starts": len(others.starts) if others is not None else 0,
            "waits": len(others.waits) if others is not None else 0,
            "evicted": len(others.evicted) if others is not None else 0,
        },
        age=age,
        settled=found.settled if found is not None else True,
    )


def visible(user: Any, uids: Collection[str]) -> set[str]:
    """Those of these pods that a user may see; who sees everything sees those of which there is no row yet, too."""
    if policy().rights(user) == "all":
        return set(uids)
    rows = Pod.objects.filter(pk__in=uids)
    jobs = policy().visible(user, Job.objects.filter(pk__in=rows.exclude(job_uid="").values("job_uid"))).values("pk")
    found = policy().visible(user, rows)
    return set(found.filter(job_uid="").values_list("pk", flat=True)) | set(
        found.filter(job_uid__in=jobs).values_list("pk", flat=True)
    )


def _order(each: Leaver) -> tuple[bool, str, str]:
    return each.stay is not None, each.node, objects.key(each.pod)


def _gangs(names: Names, going: Going, found: what_if.Outcome | None) -> Iterable[GangLine]:
    for key, gang in going.gangs.items():
        out, back = found.moved.get(key, (len(gang.leaving), 0)) if found is not None else (len(gang.leaving), 0)
        places = sorted(found.places.get(key, Counter()).items()) if found is not None else []
        why = found.whys.get(key) if found is not None else None
        again = gang.disruption is None or gang.disruption.again
        yield GangLine(
            gang, names.job(key), names.name(key), len(gang.evicted), out, back if again else 0, places if again else [],
            why.as_dict() if why is not None and again else None,
        )  # fmt: skip


def _budgets(going: Going, seen: Collection[str]) -> list[Budget]:
    """The budgets; of those in namespaces in which the viewer sees no pod here, nothing but their numbers."""
    spaces = {objects.namespace(each.pod) for each in going.pods if objects.uid(each.pod) in seen}
    return [each if each.key.partition("/")[0] in spaces else Budget("", each.pods, each.allowed) for each in going.budgets]


# -- JSON --------------------------------------------------------------------------------------------------------------


def as_json(found: Preview) -> Json:
    """A preview as data, with the sentences of the page in every language."""
    return {
        "nodes": [node.name for node in found.nodes],
        "pods": {
            "go": found.going, "bare": found.bare, "local_data": found.local_data, "other_schedulers": found.foreign,
            "stay": dict(found.staying), "hidden": found.hidden,
        },
        "gangs_below_minimum": found.below,
        "gangs_not_placed_at_once": found.unplaced,
        "owners": [{"owner": owner, "pods": pods} for owner, pods in found.owners],
        "jobs": [_gang_json(each) for each in found.gangs],
        "budgets": [
            {"budget": each.key, "pods": each.pods, "allowed_now": each.allowed, "blocks": each.blocks} for each in found.budgets
        ],
        "under_several_budgets": found.several,
        "list": [_pod_json(each) for each in found.pods],
        "others": found.others,
        "needs": [name for name, count in (("bare", found.bare), ("local_data", found.local_data)) if count],
        "missing_rights": list(found.lacking),
        "drained_already": [{"node": node, "drain": pk, "user": user} for node, pk, user in found.taken],
        "snapshot": {"age_seconds": round(found.age, 1)},
        "settled": found.settled,
    }  # fmt: skip


def _gang_json(each: GangLine) -> Json:
    job, lost = each.job, each.gang.disruption
    body: Json = {
        "job": f"{job.namespace}/{job.name}" if job is not None else "",
        "uid": job.uid if job is not None else "",
        "queue": job.queue if job is not None else "",
        "owner": job.owner if job is not None else "",
        "evicted": each.pods,
        "leaving": each.out,
        "placed_again": each.back,
        "places": [{"node": node, "pods": pods} for node, pods in each.places],
        "waits": in_languages(lambda: each.waits),
        "gang": None,
    }
    if lost is not None:
        body["gang"] = {
            "standing": lost.standing, "left": lost.left, "minimum": lost.minimum, "below": lost.is_below,
            "action": lost.choice.action.value, "delay_seconds": lost.choice.delay, "made_again": lost.again, "fails": lost.fails,
            "says": in_languages(lambda: each.standing), "then": in_languages(lambda: each.consequence),
            "maybe": [in_languages(lambda place=place: each.maybe[place]) for place in range(len(each.maybe))],  # type: ignore[misc]
        }  # fmt: skip
    return body


def _pod_json(each: PodLine) -> Json:
    leaver = each.leaver
    return {
        "namespace": objects.namespace(leaver.pod), "name": objects.name(leaver.pod), "node": leaver.node,
        "goes": leaver.stay is None, "stays": leaver.stay.value if leaver.stay is not None else "",
        "bare": leaver.is_bare, "local_data": leaver.has_local_data, "scheduler": leaver.foreign, "gpus": leaver.gpus,
        "made_by": each.owner, "job_uid": each.job.uid if each.job is not None else "",
    }  # fmt: skip
