"""What is inside a queue, and what goes on putting things there: what one must know before closing it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count

from cluster.access import policy
from jobs.blueprints.access import visible as visible_blueprints
from jobs.choices import job_mark
from jobs.models import CronJob, Job, JobFlow, JobTemplate
from queues import queries
from queues.choices import QueueState
from queues.models import Queue
from queues.queries import Branch

WAITING = ("pending", "inqueue")
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Inside:
    """Jobs of one queue by their mark; `ended` keep a queue from being Closed until they are deleted."""

    branch: Branch
    marks: Counter[str]
    ended: int

    @property
    def unended(self) -> int:
        """Jobs that have not ended."""
        return sum(self.marks.values())


@dataclass(frozen=True, slots=True)
class Maker:
    """Something that makes jobs in the queue: its kind in a word, its name, and where its page is."""

    kind: str
    name: str
    view: str
    uid: str


@dataclass(slots=True)
class Contents:
    """A queue and all below it."""

    queue: Queue
    queues: list[Inside]
    makers: list[Maker] = field(default_factory=list)
    makers_total: int = 0
    targets: list[str] = field(default_factory=list)

    @property
    def own(self) -> Inside:
        """The queue itself."""
        return self.queues[0]

    @property
    def below(self) -> list[Inside]:
        """The queues below it, which are closed with it."""
        return self.queues[1:]

    @property
    def waiting(self) -> int:
        """Jobs of the queue itself that wait."""
        return sum(self.own.marks[mark] for mark in WAITING)

    @property
    def going(self) -> int:
        """Jobs of the queue itself that hold something."""
        return sum(self.own.marks[mark] for mark in ("running", "restarting", "terminating"))

    @property
    def suspended(self) -> int:
        """Jobs of the queue itself that somebody has suspended."""
        return self.own.marks["aborted"]

    @property
    def is_shut(self) -> bool:
        """Whether it takes nothing new."""
        return self.queue.state in (QueueState.CLOSING, QueueState.CLOSED)

    @property
    def can_go(self) -> bool:
        """Whether it may be deleted now."""
        return not self.below and not self.own.unended


def contents(user: Any, queue: Queue) -> Contents:
    """What a user may know of it; counts are of all jobs, whoever may see them."""
    rows = queries.queues(user)
    branches = queries.tree(rows, [], {})
    names = next(each.names for each in branches if each.queue.name == queue.name)
    inside = [_inside(each, _counts(names)) for each in branches if each.queue.name in names]
    makers = _makers(user, names)
    parents = {row.parent for row in rows}
    targets = [row.name for row in rows if row.state == QueueState.OPEN and row.name not in {*parents, *names, queries.ROOT}]
    return Contents(queue, inside, makers[:SHOWN], len(makers), targets)


def _counts(names: list[str]) -> dict[tuple[str, str, str], int]:
    found = Job.objects.filter(queue__in=names, deleted_at=None).order_by().values_list("queue", "phase", "group_phase")
    return {(queue, phase, group): jobs for queue, phase, group, jobs in found.annotate(jobs=Count("uid"))}


def _inside(branch: Branch, counts: dict[tuple[str, str, str], int]) -> Inside:
    marks: Counter[str] = Counter()
    ended = 0
    for (queue, phase, group), jobs in counts.items():
        if queue != branch.queue.name:
            continue
        mark = "aborted" if phase == "Aborted" else job_mark(phase, group)
        if phase in ("Completed", "Failed", "Terminated"):
            ended += jobs
        else:
            marks[mark] += jobs
    return Inside(branch, marks, ended)


def _makers(user: Any, names: list[str]) -> list[Maker]:
    """Cron jobs, templates with their flows, and blueprints that name one of the queues."""
    found: list[Maker] = []
    seen = policy().visible
    crons = seen(user, CronJob.objects.filter(deleted_at=None, manifest__spec__jobTemplate__spec__queue__in=names))
    found += [Maker("cron", each.name, "jobs:cron", each.uid) for each in crons.only("uid", "name")]
    templates = list(seen(user, JobTemplate.objects.filter(deleted_at=None, queue__in=names)).only("uid", "name", "namespace"))
    found += [Maker("template", each.name, "jobs:template", each.uid) for each in templates]
    if templates:
        used = {(each.namespace, each.name) for each in templates}
        flows = seen(user, JobFlow.objects.filter(deleted_at=None)).only("uid", "name", "namespace", "manifest")
        found += [Maker("flow", each.name, "jobs:flow", each.uid) for each in flows if _uses(each, used)]
    blueprints = visible_blueprints(user).filter(is_archived=False, audience__kind="queue", audience__value__in=names).distinct()
    return found + [Maker("blueprint", each.name, "jobs:blueprint", each.name) for each in blueprints]


def _uses(flow: JobFlow, templates: set[tuple[str, str]]) -> bool:
    parts = (flow.manifest.get("spec") or {}).get("flows") or ()
    return any((flow.namespace, str(part.get("name"))) in templates for part in parts if isinstance(part, dict))
