"""Topics whose rows are drawn on the server: lists of flows and cron jobs by uid, and the parts of one of them by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from django.db.models import Model

from cluster.access import policy
from jobs.bulk import pages as bulk_pages
from jobs.bulk.control import found as bulk_found
from jobs.cron import pages as cron_pages
from jobs.flows import pages as flow_pages
from jobs.models import CronJob, Job, JobFlow
from portal.live.answers import Answer, Row, Topic, Uids

Rendered = dict[str, Row]


class RenderedList(Topic):
    """Rows that a page names; a snapshot without names is empty."""

    interval = 0.5
    is_list = True

    def __init__(self, notice: str, model: type[Any], render: Callable[[Iterable[Any]], Rendered]) -> None:
        self._notice, self._model, self._render = notice, model, render

    def touched(self, topic: str, uids: Uids) -> Uids:
        return uids if topic == self._notice else ()

    def load(self, user: Any, uids: Uids) -> Answer:
        rows = self._model.objects.filter(pk__in=uids if uids is not None else (), deleted_at=None)
        return Answer(self._render(policy().visible(user, rows)))


class RenderedPage(Topic):
    """One flow or cron job: its parts, drawn anew when it, a job of its own, or an event about it changes."""

    interval = 0.5

    def __init__(self, uid: str, notice: str, model: type[Any], parts: Iterable[str], render: Callable[[Any], Rendered]) -> None:
        self._uid, self._notice, self._model = uid, notice, model
        self._parts, self._render = tuple(parts), render
        self._jobs: set[str] = set()

    def touched(self, topic: str, uids: Uids) -> Uids:
        """All parts, or none."""
        if topic not in (self._notice, "about", "jobs"):
            return ()
        concerns = self._jobs if topic == "jobs" else {self._uid}
        return self._parts if uids is None or concerns.intersection(uids) else ()

    def load(self, user: Any, uids: Uids) -> Answer:
        """Every part, or those named."""
        row: Model | None = policy().visible(user, self._model.objects.filter(pk=self._uid)).first()
        if row is None:
            return Answer()
        self._jobs = set(Job.objects.filter(made_by=self._uid).order_by("-created_at").values_list("uid", flat=True)[:500])
        return Answer({name: part for name, part in self._render(row).items() if not uids or name in uids})

    def gone(self, asked: Uids, rows: dict[str, Row]) -> list[str]:
        """Parts stay: a row that is deleted says so itself."""
        return []


class BulkPage(Topic):
    """The progress of an action on many jobs, for who asked for it."""

    interval = 0.5
    is_personal = True

    def __init__(self, pk: str) -> None:
        self._pk = pk

    def touched(self, topic: str, uids: Uids) -> Uids:
        """All of it: so each page's answer is loaded for its own user, whatever others of equal rights may see."""
        return None if topic == "bulk" and (uids is None or self._pk in uids) else ()

    def load(self, user: Any, uids: Uids) -> Answer:
        try:
            operation = bulk_found(user, UUID(self._pk))
        except ValueError:
            operation = None
        return Answer() if operation is None else Answer(bulk_pages.parts(user, operation))

    def gone(self, asked: Uids, rows: dict[str, Row]) -> list[str]:
        """It stays."""
        return []


def flows() -> Topic:
    """The list of flows."""
    return RenderedList("flows", JobFlow, flow_pages.rendered_rows)


def flow(uid: str) -> Topic:
    """One flow."""
    return RenderedPage(uid, "flows", JobFlow, flow_pages.PARTS, flow_pages.rendered_parts)


def crons() -> Topic:
    """The list of cron jobs."""
    return RenderedList("crons", CronJob, cron_pages.rendered_rows)


def cron(uid: str) -> Topic:
    """One cron job."""
    return RenderedPage(uid, "crons", CronJob, cron_pages.PARTS, cron_pages.rendered_parts)
