"""What can be subscribed to: which changes concern a topic, and the rows it answers with.

A topic's `load` runs in a thread, for one user, and asks the access policy; `uids=None` asks for all that it has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import orjson
from django.db.models import QuerySet

from cluster.access import policy
from cluster.rows import event_row
from cluster.runtime import now
from jobs.models import Job, PhaseChange, Pod, PodGroup
from jobs.pages import parts, verdict
from jobs.pages.facts import gather
from jobs.pages.lives import lives
from jobs.pages.podgrid import is_large
from jobs.pages.podmap import maps
from jobs.pages.queries import EVENT_LIMIT, events_of
from jobs.pages.rendered import parts_in_all_languages
from jobs.rows import JOB_FIELDS, job_row, pod_row
from portal import evictions
from portal.live import rendered
from portal.live.answers import Answer, Plain, Row, Topic, Uids
from portal.live.cockpit import cockpit
from portal.live.fleet import FleetTopic, NodePanel, TopologyTopic
from portal.live.told import Told
from portal.models import Cycle
from portal.overview import causes
from portal.standing import standing
from queues.models import Queue
from queues.rows import queue_row

LONGEST = 100
"""Characters of a topic's name, and of a row's."""
SNAPSHOT_PODS = 200
KNOWN_PODS = 2_000
"""Pods of a job whose events are listened to from the start, the newest; of others from their first change on."""
LARGE_INTERVAL = 2.0
"""Seconds between two messages about a job with more pods than that: each looks at all of them."""
CHUNK = 500


class JobsTopic(Plain):
    """The job list: a page names the rows that it shows, so a snapshot without names is empty."""

    is_list = True

    def __init__(self) -> None:
        super().__init__("jobs", "jobs.view", _jobs)

    def load(self, user: Any, uids: Uids) -> Answer:
        return Answer(self._load(user, uids if uids is not None else ()))


def _jobs(user: Any, uids: Uids) -> dict[str, Row]:
    found = policy().visible(user, Job.objects.filter(pk__in=uids or (), deleted_at=None)).only(*JOB_FIELDS)
    return {job.uid: job_row(job) for job in found}


def _queues(user: Any, names: Uids) -> dict[str, Row]:
    found = policy().visible(user, Queue.objects.filter(deleted_at=None))
    return {queue.name: queue_row(queue) for queue in (found if names is None else found.filter(name__in=names))}


def _is_number(text: str) -> bool:
    """Whether a page's name of a row can be the number of a cycle, as a database keeps it."""
    return text.isascii() and text.isdigit() and len(text) < 19


def _cycles(user: Any, numbers: Uids) -> dict[str, Row]:
    cycles = Cycle.objects.defer("decisions", "hooks")
    found = cycles[:120] if numbers is None else cycles.filter(number__in=filter(_is_number, numbers))
    columns = ("number", "milliseconds", "actions", "considered", "bound", "evicted")
    return {str(c.number): {name: getattr(c, name) for name in columns} | {"at": c.at.isoformat()} for c in found}


class JobTopic(Topic):
    """One job: its row, and what changed of its pods, its events, its steps, and the panel that says why it waits."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self._parts: set[str] = set()
        self._told: defaultdict[str, Told[bytes]] = defaultdict(Told)

    def touched(self, topic: str, uids: Uids) -> Uids:
        """The job's own name, and with it those of the pods that changed."""
        if topic == f"job:{self.uid}":
            self._parts.update(uids or ())
            return None if uids is None else {self.uid, *uids}
        concerns = {"jobs": {self.uid}, "about": {self.uid} | self._parts}.get(topic, set())
        return (self.uid,) if concerns and (uids is None or not concerns.isdisjoint(uids)) else ()

    def load(self, user: Any, uids: Uids) -> Answer:
        """All about the job; of its pods those that are named, else those that changed last."""
        named = set(uids or ()) - {self.uid}
        pods = Pod.objects.filter(job_uid=self.uid)
        self._parts |= set(pods.order_by("-resource_version").values_list("uid", flat=True)[:KNOWN_PODS])
        found = _named(pods, named) if named else pods.order_by("-resource_version")[:SNAPSHOT_PODS]
        answer = self._load(user, found)
        self._told[policy().rights(user)].saw(_encoded(answer))
        return answer

    def _load(self, user: Any, pods: Iterable[Pod]) -> Answer:
        job = policy().visible(user, Job.objects.filter(pk=self.uid)).only(*JOB_FIELDS, "deleted_at", "manifest").first()
        if job is None:
            return Answer()
        groups = list(PodGroup.objects.filter(job_uid=self.uid).order_by("-created_at"))
        self._parts.update(group.uid for group in groups)
        changes = list(PhaseChange.objects.filter(job_uid=self.uid))
        all_pods = Pod.objects.filter(job_uid=self.uid)
        tasks, group = list(job.tasks.all()), groups[0] if groups else None
        facts = gather(job, changes, all_pods, tasks, now())
        drawn_maps = maps(tasks, all_pods) if is_large(tasks) else ()
        drawn = parts.rendered(job, changes, lives(all_pods), group, facts, drawn_maps)
        total = Pod.objects.filter(job_uid=self.uid).count()
        self.interval = Topic.interval if total <= KNOWN_PODS else LARGE_INTERVAL
        extras = {
            "pods": [pod_row(pod) for pod in pods],
            "pods_total": total,
            "events": [event_row(event) for event in events_of(self.uid)[:EVENT_LIMIT]],
            "why": [{"uid": self.uid, "html": verdict.html(job)}],
            "parts": [*drawn, evictions.part(user, self.uid)],
        }
        return Answer({self.uid: job_row(job)}, extras)

    def delta(self, user: Any, uids: Uids) -> Answer:
        """What changed: the pods that are named, and of the rest what was not sent before."""
        told = self._told[policy().rights(user)]
        doubted = told.begin()
        answer = self._load(user, _named(Pod.objects.filter(job_uid=self.uid), set(uids or ()) - {self.uid}))
        now_told = _encoded(answer)
        before = told.tell(now_told, doubted)
        for name in PARTS:
            rows, keys = answer.extras.get(name, ()), {key for key in now_told if now_told[key] != before[key]}
            answer.extras[name] = [row for row in rows if f"{name}/{row['uid']}" in keys]
        return answer

    def gone(self, asked: Uids, rows: dict[str, Row]) -> list[str]:
        """The job alone: its pods say in their rows that they are gone."""
        return [self.uid] if self.uid in (asked or ()) and self.uid not in rows else []


def _named(pods: QuerySet[Pod], uids: Iterable[str]) -> Iterator[Pod]:
    """The pods of these names; a statement takes only so many."""
    names = iter(sorted(uids))
    while chunk := list(islice(names, CHUNK)):
        yield from pods.filter(pk__in=chunk)


PARTS = ("events", "why", "parts")
"""What a job's deltas leave out while it stays as it is."""


def _encoded(answer: Answer) -> dict[str, bytes]:
    return {f"{name}/{row['uid']}": orjson.dumps(row) for name in PARTS for row in answer.extras.get(name, ())}


class OverviewTopic(Topic):
    """The headline numbers, the queues' lines and why jobs wait, of one moment: at most once a second, for all moves them."""

    interval = 1.0

    def touched(self, topic: str, uids: Uids) -> Uids:
        return ("overview",) if topic in ("jobs", "topology", "queues") else ()

    def load(self, user: Any, uids: Uids) -> Answer:
        told = standing(user)
        held = parts_in_all_languages({"held": "portal/held.html"}, lambda: causes(told.waits))
        return Answer(extras=told.as_dict() | {"held": held["held"]["html"]})

    def gone(self, asked: Uids, rows: dict[str, Row]) -> list[str]:
        """It has no rows."""
        return []


def is_name(text: str) -> bool:
    """Whether a text may name a topic or a row: short, and without NUL, which databases refuse."""
    return len(text) <= LONGEST and "\x00" not in text


def make(name: str) -> Topic | None:
    """The topic of a name, or None."""
    if name.startswith("job:") and 5 <= len(name) <= LONGEST:
        return JobTopic(name.removeprefix("job:"))
    kind, _, uid = name.partition(":")
    if uid and len(name) <= LONGEST and kind in _PAGES:
        return _PAGES[kind](uid)
    maker = _TOPICS.get(name)
    return maker() if maker else None


_TOPICS: dict[str, Callable[[], Topic]] = {
    "jobs": JobsTopic,
    "queues": lambda: Plain("queues", "queues.view", _queues),
    "topology": TopologyTopic,
    "fleet": FleetTopic,
    "scheduler": lambda: Plain("scheduler", "scheduler.view", _cycles),
    "overview": OverviewTopic,
    "flows": rendered.flows,
    "crons": rendered.crons,
}
_PAGES: dict[str, Callable[[str], Topic | None]] = {
    "flow": rendered.flow,
    "cron": rendered.cron,
    "bulk": rendered.BulkPage,
    "panel": NodePanel,
    "cockpit": cockpit,
}
NAMES = (
    "jobs, job:<uid>, flows, flow:<uid>, crons, cron:<uid>, bulk:<id>, queues, topology, fleet, panel:<node>, scheduler, "
    "cockpit:<range>.<by>.<evictions>.<cycle>, overview"
)

__all__ = ["Answer", "Topic", "Uids", "is_name", "make"]
