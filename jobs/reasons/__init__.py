"""Why a job waits, in words: a verdict's code and numbers become sentences in the reader's language.

A verdict is data (`scheduler.framework.explain.Verdict.as_dict()`); nothing else in Basalt words it. Unknown codes, as an
older or newer scheduler may write them, are said by the stage alone.

`labels` names stages, causes and rules; `sentences` has the form of words for each code.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from cluster.display import amount, number, quantity, resource_name, short_model, spaced
from cluster.quantities import is_gpu
from jobs.elsewhere import SAID
from jobs.reasons.labels import cause_label, spared_label, stage_label
from jobs.reasons.sentences import ADVICE, LONG, SHORT, Verdict, beyond_cluster, beyond_queue, is_impossible
from scheduler.framework.explain import Code, Stage

__all__ = [
    "Figure", "Rejection", "Step", "advice", "cause_label", "headline", "is_impossible", "numbers", "rejections", "say",
    "spared", "spared_label", "stage_label", "steps",
]  # fmt: skip


def say(verdict: Verdict | None, model: str = "") -> str:
    """One line in the active language; `model` names the GPUs that are asked."""
    if not verdict:
        return ""
    form = SHORT.get(verdict.get("code", ""))
    places = _places(verdict, model)
    return spaced((form(verdict) if form else _("Held at: %(stage)s")) % places)


def headline(verdict: Verdict, model: str = "") -> tuple[str, str]:
    """The job page's answer: what is the matter, and what is missing (empty when nothing can be counted)."""
    form = LONG.get(verdict.get("code", "")) or SHORT.get(verdict.get("code", ""))
    places = _places(verdict, model)
    statement = spaced((form(verdict) if form else _("Held at: %(stage)s")) % places)
    if not statement.endswith((".", "。")):
        statement = _("%(statement)s.") % {"statement": statement}
    if is_impossible(verdict):
        if beyond_queue(verdict):
            return statement, _("It can never start as the queue stands.")
        return statement, _("It can never start as the cluster stands.") if beyond_cluster(verdict) else _("It can never start.")
    if not verdict.get("short") or verdict.get("code") == Code.RELEASING:
        return statement, ""
    short = _("The best node is short by %(short)s.") if _is_of_a_node(verdict) else _("Short by %(short)s.")
    return statement, spaced(short % places)


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of the sum "asked − free = short", with its unit in the label; `key` is the verdict's."""

    key: str
    value: str
    label: str


def numbers(verdict: Verdict, model: str = "") -> list[Figure]:
    """Asked, what there is of it, and short, in this order; none when the verdict counts no resource."""
    verdict = _whole(verdict)
    resource = verdict.get("resource", "")
    if not resource or not verdict.get("asked") or not verdict.get("short"):
        return []
    what = {"resource": short_model(model) if model and is_gpu(resource) else resource_name(resource)}
    if is_impossible(verdict):  # what is free does not matter: the sum is with what there is at most
        verdict = {**verdict, "short": verdict["asked"] - verdict.get("limit", 0)}
    elif not verdict.get("free") and verdict["asked"] != verdict["short"]:
        return []  # a queue that has more than its limit: the sentence tells it, no such sum does
    if beyond_queue(verdict):
        labels = {"asked": _("%(resource)s asked") % what, "limit": _("the queue's limit"), "short": _("short")}
    elif beyond_cluster(verdict):
        labels = {"asked": _("%(resource)s asked") % what, "limit": _("the cluster admits"), "short": _("short")}
    elif is_impossible(verdict):
        labels = {"asked": _("%(resource)s for one pod") % what, "limit": _("on the largest node"), "short": _("short")}
    elif _is_of_a_node(verdict):
        labels = {"asked": _("%(resource)s for one pod") % what, "free": _("free on the best node"), "short": _("short")}
    else:
        labels = {"asked": _("%(resource)s asked") % what, "free": _("free for it"), "short": _("short")}
    return [Figure(key, _bare(verdict.get(key, 0), resource), label) for key, label in labels.items()]


@dataclass(frozen=True, slots=True)
class Step:
    """A stage on the way to a start: `status` is ok, held, or empty for one that was not reached."""

    stage: str
    label: str
    status: str


def steps(verdict: Verdict) -> list[Step]:
    """The stages in the order in which this job meets them, up to and beyond the one that holds it; none that nobody says."""
    if verdict.get("code") == SAID:
        return []  # how far it came is known to its own scheduler alone
    order = [Stage.DEPENDENCY, Stage.ADMISSION, Stage.QUEUE_LIMIT, Stage.NODE_FIT, Stage.TOPOLOGY, Stage.GANG]
    held = verdict.get("stage", "")
    if verdict.get("code") == Code.GANG_TOO_FEW_PODS:  # pods that do not exist are missed before anything else is asked
        order = [Stage.DEPENDENCY, Stage.GANG, *[s for s in order[1:] if s is not Stage.GANG]]
    passed = set(order)
    if held == Stage.PREEMPTION:  # tried since no node fits: that stage was not passed
        order.insert(order.index(Stage.NODE_FIT) + 1, Stage.PREEMPTION)
        passed.remove(Stage.NODE_FIT)
    at = order.index(Stage(held)) if held in order else 0
    return [
        Step(s.value, stage_label(s), "held" if i == at else "ok" if i < at and s in passed else "") for i, s in enumerate(order)
    ]


_ROOM = frozenset(
    {
        "gpu_slots",
        "gpu_cards",
        "pod_count",
        "ports",
        "numa_cpus",
        "node_lock",
        "devices",
        "volume_in_use",
        "volume_limit",
        "volume_capacity",
    }
)


@dataclass(frozen=True, slots=True)
class Rejection:
    """How many nodes one cause ruled out; `share` is a part of the largest, for the bar."""

    count: int
    label: str
    cause: str
    share: float

    @property
    def is_room(self) -> bool:
        """Room may come by itself; other causes stay until somebody changes something."""
        return self.cause.startswith("insufficient:") or self.cause in _ROOM


def rejections(verdict: Verdict) -> list[Rejection]:
    """Nodes by cause, most first."""
    rejected = _by_count(verdict)
    most = max((count for _cause, count in rejected), default=1) or 1
    return [Rejection(count, cause_label(cause), cause, count / most) for cause, count in rejected]


def spared(verdict: Verdict) -> list[Rejection]:
    """Pods that were looked at as victims, by the rule that spares them, most first."""
    counts = _by_count(verdict, "spared")
    most = max((count for _rule, count in counts), default=1) or 1
    return [Rejection(count, spared_label(rule), rule, count / most) for rule, count in counts]


def _by_count(verdict: Verdict, what: str = "rejected") -> list[tuple[str, int]]:
    return sorted((verdict.get(what) or {}).items(), key=lambda item: (-item[1], item[0]))


def advice(verdict: Verdict, model: str = "") -> str:
    """The one thing to do about it; empty for codes that Basalt does not know."""
    form = ADVICE.get(verdict.get("code", ""))
    return spaced(form(verdict) % _places(verdict, model)) if form else ""


def _is_of_a_node(verdict: Verdict) -> bool:
    """Whether the amounts are of one pod on one node; else they are of the job in its queue or cluster."""
    return verdict.get("code") in (
        Code.NODES_INSUFFICIENT,
        Code.GANG_INCOMPLETE,
        Code.RELEASING,
        Code.DEVICES_INSUFFICIENT,
        Code.TOPOLOGY_NO_DOMAIN,
        Code.NO_VICTIMS,
    )


def _bare(units: int, resource: str) -> str:
    text, unit = amount(units, resource)
    return f"{text} {unit}" if unit else text


def _whole(verdict: Verdict) -> Verdict:
    """Room for admission is a multiple of what the cluster has, less what was admitted; nobody can ask for a part of a GPU."""
    if verdict.get("code") != Code.OVERCOMMIT:
        return verdict
    unit = 1000 if is_gpu(verdict.get("resource", "")) else 1
    free, limit = (int(verdict.get(key) or 0) // unit * unit for key in ("free", "limit"))
    return {**verdict, "free": max(free, 0), "limit": limit, "short": int(verdict.get("asked") or 0) - free}


def _places(verdict: Verdict, model: str) -> dict[str, str]:
    """The values for the places of a sentence; amounts carry what they are amounts of, except `…_bare`."""
    resource = verdict.get("resource", "")
    verdict = _whole(verdict)
    used = max(0, verdict.get("limit", 0) - verdict.get("free", 0))
    if not verdict.get("free") and verdict.get("asked") and verdict.get("short"):  # it may be above its limit: `short` tells
        used = max(used, verdict.get("limit", 0) - verdict["asked"] + verdict["short"])
    places = {
        "stage": stage_label(verdict.get("stage", "")),
        "queue": verdict.get("queue", ""),
        "task": verdict.get("task", ""),
        "domain": verdict.get("domain", ""),
        "plugin": verdict.get("plugin", ""),
        "kind": verdict.get("kind", ""),
        "object": verdict.get("object", ""),
        "said": verdict.get("said", ""),
        "resource": resource_name(resource),
        "cause": next((cause_label(cause) for cause, _count in _by_count(verdict)), ""),
        "used_bare": _bare(used, resource),
        "free_bare": _bare(verdict.get("free", 0), resource),
        "limit_bare": _bare(verdict.get("limit", 0), resource),
    }
    for key in ("asked", "free", "short"):
        places[key] = quantity(verdict.get(key, 0), resource, model)
    places["limit"] = quantity(verdict.get("limit", 0), resource)  # a queue's limit counts GPUs of every model
    for key in ("needed", "placeable", "nodes", "tier", "candidates"):
        places[key] = number(verdict.get(key, 0))
    return places
