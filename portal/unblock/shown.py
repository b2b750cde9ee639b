"""Answers as a user may see them: as JSON for programs, and as rows for the panel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils import translation
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from cluster.access import policy
from cluster.display import number
from jobs import reasons, summary
from jobs.elsewhere import SAID
from jobs.models import Job, PodGroup
from jobs.submit.preview import offered_queues
from portal.simulations import estimates
from portal.unblock import words
from portal.unblock.answers import Answer, Found, Key, desk
from scheduler.framework.record import EvictionRecord

Json = dict[str, Any]


def in_languages(say: Callable[[], str]) -> dict[str, str]:
    """Words in every language of the portal."""
    found = {}
    for code, _name in settings.LANGUAGES:
        with translation.override(code):
            found[code] = str(say())
    return found


def waits(job: Job) -> bool:
    """Whether there is anything to explain."""
    return bool(job.verdict) and job.deleted_at is None


def answer_of(user: Any, job: Job, wait: float = 0.0) -> Answer:
    """What is known of a waiting job; nothing of one that another scheduler places. Raises Unavailable without a cluster."""
    if not waits(job) or (job.verdict or {}).get("code") == SAID or not policy().may(user, "jobs.submit"):
        return Answer("none")
    key: Key = (job.uid, job.namespace, job.name, tuple(sorted(offered_queues(user))))
    return desk.ask(key, wait)


class Names:
    """Names of jobs by the keys of their PodGroups, those alone that a user may see."""

    def __init__(self, user: Any, keys: Iterable[str]) -> None:
        self._jobs: dict[str, Job] = {}
        wanted = set(keys)
        rows = PodGroup.objects.filter(name__in={key.partition("/")[2] for key in wanted}).exclude(job_uid="")
        owners = {f"{space}/{name}": uid for space, name, uid in rows.values_list("namespace", "name", "job_uid")}
        jobs = policy().visible(user, Job.objects.filter(pk__in=owners.values())).only("uid", "name", "namespace", "queue")
        found = {job.uid: job for job in jobs}
        self._jobs = {key: found[uid] for key, uid in owners.items() if uid in found}

    def job(self, key: str) -> Job | None:
        """The job, if the user may see it."""
        return self._jobs.get(key)

    def name(self, key: str) -> str:
        """Its name, or a word for one that is hidden."""
        job = self._jobs.get(key)
        return job.name if job is not None else _("another job")

    def as_json(self, key: str) -> Json:
        """Its name, uid and queue; empty for one that is hidden."""
        job = self._jobs.get(key)
        if job is None:
            return {"job": "", "uid": "", "queue": ""}
        return {"job": f"{job.namespace}/{job.name}", "uid": job.uid, "queue": job.queue}


def keys_of(found: Collection[Found]) -> set[str]:
    """All jobs that ways speak of."""
    named = {str(each.values["job"]) for each in found if each.code == "wait"}
    return named | {key for each in found for key in each.delayed} | {one.victim_job for each in found for one in each.evicted}


@dataclass(frozen=True, slots=True)
class Row:
    """One way in the panel. `query` leads to a changed copy, `apply` says that the live job can be changed."""

    code: str
    title: str
    effect: str
    soon: str
    evicts: str
    delays: str
    apply: bool
    copy: bool
    place: int


def rows(user: Any, job: Job, answer: Answer) -> list[Row]:
    """The ways in the active language."""
    names = Names(user, keys_of(answer.found))
    acts = policy().may(user, "jobs.act", job)
    found = []
    for place, each in enumerate(answer.found):
        found.append(
            Row(
                each.code,
                words.title(each.code, _named(each, names)),
                _effect(each, cost=False),
                words.how_soon(each.cycles),
                evicts_words(names, each.evicted),
                delays_words(names, each.delayed),
                each.in_place and each.patch is not None and acts,
                not each.in_place,
                place,
            )
        )
    return found


def evicts_words(names: Names, evicted: Collection[EvictionRecord]) -> str:
    """Who has to give way, in words; empty for nobody."""
    victims = Counter(names.name(each.victim_job) for each in evicted)
    return words.evicts(victims.most_common()) if victims else ""


def delays_words(names: Names, delayed: Collection[str]) -> str:
    """Who starts later, in words; empty for nobody."""
    return words.delays([names.name(key) for key in delayed]) if delayed else ""


def _named(each: Found, names: Names) -> dict[str, Any]:
    return each.values | ({"job": names.name(str(each.values["job"]))} if each.code == "wait" else {})


def _effect(each: Found, *, cost: bool = True) -> str:
    """What it does; `cost`: also to how many others."""
    if each.code == "wait":
        return words.holds(each.values)
    return words.effect(each.starts, each.pods, evicted=cost * len(each.evicted), delayed=cost * len(each.delayed))


def _effect_and_when(each: Found) -> str:
    """Waiting starts nothing: when it does is the likely start's to say."""
    return _effect(each) if each.code == "wait" else words.effect_and_when(_effect(each), words.how_soon(each.cycles))


# -- JSON --------------------------------------------------------------------------------------------------------------


def explanation(user: Any, job: Job, answer: Answer) -> Json:
    """Everything that is known about why a job waits; `portal.unblock.api` describes every key."""
    verdict = job.verdict if waits(job) else None
    return {
        "uid": job.uid,
        "namespace": job.namespace,
        "name": job.name,
        "queue": job.queue,
        "phase": job.phase,
        "group_phase": job.group_phase,
        "waits": verdict is not None,
        "impossible": reasons.is_impossible(verdict),
        "why": summary.lines(job),
        "statement": in_languages(lambda: " ".join(reasons.headline(verdict, job.gpu_model)).strip() if verdict else ""),
        "advice": in_languages(lambda: reasons.advice(verdict, job.gpu_model) if verdict else ""),
        "verdict": verdict,
        "numbers": _numbers(job, verdict),
        "stages": _stages(verdict),
        "rejected": _rejected(job, verdict),
        "snapshot": _snapshot(answer),
        "position": _position(answer),
        "start": estimates.as_json(estimates.of(job)),
        "free_gpus": [{"node": each.node, "gpus": each.gpus, "free": each.free} for each in answer.free],
        "unblock": {
            "state": answer.state,
            "milliseconds": round(answer.milliseconds, 1),
            "tried": answer.tried,
            "ways": ways_json(user, answer.found),
        },
    }


def ways_json(user: Any, found: Collection[Found]) -> list[Json]:
    """Ways as data, with words in every language."""
    names = Names(user, keys_of(found))
    return [
        {
            "code": each.code,
            "text": in_languages(lambda each=each: words.title(each.code, _named(each, names))),  # type: ignore[misc]
            "effect": in_languages(lambda each=each: _effect_and_when(each)),  # type: ignore[misc]
            "values": _named(each, names),
            "patch": each.patch,
            "in_place": each.in_place,
            "starts": each.starts,
            "pods": each.pods,
            "cycles": each.cycles,
            "places": places_json(each.places),
            "evicted": evicted_json(names, each.evicted),
            "delayed": [names.as_json(key) for key in each.delayed],
        }
        for each in found
    ]


def places_json(places: Iterable[tuple[str, str, tuple[int, ...]]]) -> list[Json]:
    """Where pods go."""
    return [{"pod": pod, "node": node, "gpus": list(gpus)} for pod, node, gpus in places]


def evicted_json(names: Names, evicted: Iterable[EvictionRecord]) -> list[Json]:
    """Who has to give way; of jobs that the user may not see only the number is told."""
    return [
        {"pod": each.victim if names.job(each.victim_job) else "", "node": each.node, "action": each.action, "rule": each.rule}
        | names.as_json(each.victim_job)
        for each in evicted
    ]


def _numbers(job: Job, verdict: Json | None) -> list[Json]:
    if not verdict:
        return []
    figures: dict[str, Json] = {}
    for code, _name in settings.LANGUAGES:
        with translation.override(code):
            for each in reasons.numbers(verdict, job.gpu_model):
                made = figures.setdefault(each.key, {"key": each.key, "units": verdict.get(each.key, 0), "text": {}, "label": {}})
                made["text"][code], made["label"][code] = each.value, str(each.label)
    return list(figures.values())


def _stages(verdict: Json | None) -> list[Json]:
    steps = reasons.steps(verdict) if verdict else []
    return [
        {"stage": step.stage, "status": step.status, "label": in_languages(lambda step=step: reasons.stage_label(step.stage))}  # type: ignore[misc]
        for step in steps
    ]


def _rejected(job: Job, verdict: Json | None) -> list[Json]:
    return [
        {
            "cause": each.cause,
            "count": each.count,
            "label": in_languages(lambda each=each: reasons.cause_label(each.cause)),  # type: ignore[misc]
            "nodes_url": f"{reverse('cluster:nodes')}?{urlencode({'job': job.uid, 'cause': each.cause})}",
        }
        for each in (reasons.rejections(verdict) if verdict else ())
    ]


def _snapshot(answer: Answer) -> Json | None:
    if not answer.version:
        return None
    at = datetime.fromtimestamp(answer.at, UTC).isoformat()
    return {"version": answer.version, "at": at, "age_seconds": round(answer.age, 1)}


def _position(answer: Answer) -> Json | None:
    if not answer.place:
        return None
    return {"queue": {"rank": answer.rank, "of": answer.among}, "all": {"rank": answer.place, "of": answer.line}}


def position(answer: Answer, queue: str) -> str:
    """The place in the line, in words; empty when it is in none."""
    if not answer.place:
        return ""
    places = {"rank": number(answer.rank), "of": number(answer.among), "queue": queue}
    return _("Place %(rank)s of %(of)s in %(queue)s.") % places
