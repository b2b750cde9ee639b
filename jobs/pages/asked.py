"""What a job list's address asks for: filters, grouping, order, page, columns; and the rows that answer to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cluster.runtime import now
from cluster.selectors import Requirement, Selector, parse_selector
from jobs.choices import ADMITTED, JobPhase
from jobs.models import Job, JobLabel
from jobs.pages.columns import COLUMNS as TABLE
from scheduler.framework.explain import Stage

TEXT_LIMIT = 200

SORTS: dict[str, tuple[str, ...]] = {
    "created": ("created_at", "-uid"),
    "name": ("name", "uid"),
    "queue": ("queue", "-created_at", "uid"),
    "owner": ("owner", "-created_at", "uid"),
    "gpus": ("gpus", "-uid"),
    "pods": ("replicas", "-uid"),
    "since": ("phase_since", "-uid"),
    "state": ("phase", "-created_at", "uid"),
    "finished": ("finished_at", "-uid"),
}
"""Names of orderings in a URL, `-` before one reverses it, and what they sort by: as an index of the table has it."""

WINDOWS = {"1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7)}
"""Windows, up to now, in which a job may have been submitted or have ended."""
WINDOW_WORDS = {
    "1h": gettext_lazy("in the last hour"),
    "24h": gettext_lazy("in the last 24 h"),
    "7d": gettext_lazy("in the last 7 d"),
}

STATES: dict[str, Q] = {"inqueue": Q(phase=JobPhase.PENDING, group_phase__in=ADMITTED)}
for _mark in ("pending", "running", "restarting", "terminating", "failed", "aborted", "completed"):
    STATES[_mark] = Q(phase__in=[phase for phase in JobPhase if phase.mark == _mark])
STATES["pending"] &= ~Q(group_phase__in=ADMITTED)
STATE_ORDER = ("pending", "inqueue", "running", "restarting", "terminating", "failed", "aborted", "completed")

FACETS = {"stage": "verdict_stage", "queue": "queue", "owner": "owner", "namespace": "namespace", "model": "gpu_model"}
DIMENSIONS = ("state", *FACETS)
GROUPS = ("state", "queue", "owner", "namespace", "model")
"""What a list may be grouped by."""
GROUP_SORTS = ("name", "jobs", "pods", "gpus")


@dataclass(frozen=True, slots=True)
class Filter:
    """What a URL's query asks for. `problems` says, in words, what of it cannot be understood and was left out."""

    state: tuple[str, ...] = ()
    stage: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    ended: str = ""
    submitted: str = ""
    text: str = ""
    label: str = ""
    gone: bool = False
    group: str = ""
    sort: str = "-created"
    page: int = 1
    columns: tuple[str, ...] = ()
    problems: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, query: QueryDict) -> Filter:
        """Read a query string."""
        reader = _Reader(query)
        group = reader.one("group", GROUPS)
        return cls(
            state=reader.many("state", STATE_ORDER),
            stage=reader.many("stage", [stage.value for stage in Stage]),
            **{name: tuple(query.getlist(name)) for name in ("queue", "owner", "namespace", "model")},
            ended=reader.one("ended", WINDOWS),
            submitted=reader.one("submitted", WINDOWS),
            text=query.get("q", "").strip().replace("\x00", "")[:TEXT_LIMIT],
            label=reader.label(),
            gone=query.get("gone") == "1",
            group=group,
            sort=reader.sort(GROUP_SORTS, "-jobs") if group else reader.sort(SORTS, "-created"),
            page=reader.page(),
            columns=reader.columns(),
            problems=tuple(reader.problems),
        )

    @property
    def is_empty(self) -> bool:
        """Nothing is filtered out."""
        return not (self.text or self.ended or self.submitted or self.label or any(getattr(self, name) for name in DIMENSIONS))

    @property
    def chosen(self) -> list[str | Promise]:
        """What is asked for, value by value."""
        values = [value for name in DIMENSIONS for value in getattr(self, name)]
        return [*values, *filter(None, (WINDOW_WORDS.get(self.submitted), WINDOW_WORDS.get(self.ended), self.label, self.text))]

    def base(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        """The set that facets count in: everything but the facets' own choices."""
        if not self.gone:
            jobs = jobs.filter(deleted_at=None)
        if self.ended:
            jobs = jobs.filter(finished_at__gt=now() - WINDOWS[self.ended])
        if self.submitted:
            jobs = jobs.filter(created_at__gt=now() - WINDOWS[self.submitted])
        for word in self.text.split():
            jobs = jobs.filter(
                Q(name__icontains=word) | Q(owner__icontains=word) | Q(queue__icontains=word) | Q(namespace__icontains=word)
            )
        return labelled(jobs, parse_selector(self.label)) if self.label else jobs

    def narrow(self, jobs: QuerySet[Job], without: str = "") -> QuerySet[Job]:
        """The jobs that match; `without` names a dimension whose choices are left aside."""
        jobs = self.base(jobs)
        if self.state and without != "state":
            wanted = Q()
            for state in self.state:
                wanted |= STATES[state]
            jobs = jobs.filter(wanted)
        for name, column in FACETS.items():
            if name != without and (chosen := getattr(self, name)):
                jobs = jobs.filter(**{f"{column}__in": chosen})
        return jobs

    def apply(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        """The jobs that match, in order; a list that is grouped orders its jobs as one that asks for nothing."""
        name = "-created" if self.group else self.sort
        keys = SORTS[name.removeprefix("-")]
        return self.narrow(jobs).order_by(*(_backwards(keys) if name.startswith("-") else keys))


def _backwards(keys: tuple[str, ...]) -> tuple[str, ...]:
    """The other way round; where the newest come first among equals, they still do."""
    turned = tuple(key.removeprefix("-") if key.startswith("-") else f"-{key}" for key in keys)
    return (turned[0], *keys[1:]) if "-created_at" in keys else turned


def labelled(jobs: QuerySet[Job], selector: Selector) -> QuerySet[Job]:
    """The jobs whose labels a selector takes."""
    for requirement in selector.requirements:
        condition = Q(uid__in=_having(requirement).values("job"))
        jobs = jobs.filter(~condition if requirement.operator in ("NotIn", "DoesNotExist") else condition)
    return jobs


def _having(requirement: Requirement) -> QuerySet[JobLabel]:
    """Labels of this key, and of these values where the requirement names any."""
    labels = JobLabel.objects.filter(key=requirement.key)
    return labels.filter(value__in=requirement.values) if requirement.values else labels


class _Reader:
    """Values of a query string that must be known; what is not is told in `problems`."""

    def __init__(self, query: QueryDict) -> None:
        self.problems: list[str] = []
        self._query = query

    def many(self, name: str, possible: Iterable[str]) -> tuple[str, ...]:
        """Every known value of a name."""
        known, asked = tuple(possible), self._query.getlist(name)
        self.problems.extend(
            _("%(name)s “%(value)s” is not known; use one of %(possible)s.")
            % {"name": name, "value": value[:60], "possible": ", ".join(known)}
            for value in asked
            if value not in known
        )
        return tuple(value for value in asked if value in known)

    def one(self, name: str, possible: Iterable[str]) -> str:
        """The first known value; empty where none is asked for."""
        return next(iter(self.many(name, possible)), "") if self._query.get(name) else ""

    def sort(self, possible: Iterable[str] | Mapping[str, Any], usual: str) -> str:
        """The order."""
        asked = self._query.get("sort") or usual
        if asked.removeprefix("-") in tuple(possible):
            return asked
        self.many("sort", possible)
        return usual

    def page(self) -> int:
        """The page's number, from 1."""
        text = self._query.get("page", "1")
        if text.isascii() and text.isdigit() and int(text[:8]) > 0:
            return int(text[:8])
        self.problems.append(_("page “%(value)s” is not a whole number from 1.") % {"value": text[:20]})
        return 1

    def label(self) -> str:
        """A selector that can be read, as it was written; several conditions or several selectors must all hold."""
        text = ",".join(part for part in (each.strip().replace("\x00", "") for each in self._query.getlist("label")) if part)[
            :500
        ]
        try:
            compared = any(requirement.operator in ("Gt", "Lt") for requirement in parse_selector(text).requirements)
        except ValueError:
            compared = True
        if not compared:
            return text
        says = _("label “%(value)s” is no selector; write app=web, tier in (a,b), !old.")
        self.problems.append(says % {"value": text[:60]})
        return ""

    def columns(self) -> tuple[str, ...]:
        """The columns that are asked for, in the table's own order; none means the usual ones."""
        query = QueryDict(mutable=True)
        query.setlist("columns", [name for each in self._query.getlist("columns") for name in each.split(",") if name])
        reader = _Reader(query)
        asked = set(reader.many("columns", TABLE))
        self.problems += reader.problems
        return tuple(name for name in TABLE if name in asked)
