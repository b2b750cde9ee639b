"""Finding by typing: pages, jobs, queues, nodes, flows and cron jobs.

The top bar asks while one types; `/find/` answers the same as a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from cluster.access import policy
from cluster.models import Node
from jobs.choices import job_mark
from jobs.models import CronJob, Job, JobFlow
from queues.models import Queue

TEXT_LIMIT = 200
SHOWN = 6
"""Things of a kind at most, while one types."""
SHOWN_WHOLE = 50
"""The same on the page."""


@dataclass(frozen=True, slots=True)
class Found:
    """One thing to go to: its name, what to say beside it, where it is; `state` is a job's mark."""

    name: str
    url: str
    detail: str = ""
    icon: str = ""
    state: str = ""
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Things of a kind. `more` is where all of them are listed, when not all are shown."""

    title: str | Promise
    things: list[Found]
    more: str = ""


PAGES: tuple[tuple[str, str | Promise, str], ...] = (
    ("overview", gettext_lazy("Overview"), "overview"),
    ("jobs:list", gettext_lazy("Jobs"), "jobs"),
    ("jobs:submit", gettext_lazy("Submit job"), "submit"),
    ("queues:list", gettext_lazy("Queues"), "queues"),
    ("cluster:gpus", gettext_lazy("GPUs"), "gpus"),
    ("cluster:nodes", gettext_lazy("Nodes"), "nodes"),
    ("topology:domains", gettext_lazy("Network"), "flows"),
    ("topology:fragments", gettext_lazy("Fragmentation"), "gpus"),
    ("scheduler", gettext_lazy("Scheduler"), "scheduler"),
    ("jobs:flows", gettext_lazy("Flows"), "flows"),
    ("jobs:templates", gettext_lazy("Templates"), "flows"),
    ("jobs:crons", gettext_lazy("Cron jobs"), "cron"),
    ("simulations:list", gettext_lazy("Simulations"), "simulate"),
)


def pages(user: Any, text: str) -> Group:
    """Pages whose name, in the reader's language, contains the text; all of them for no text."""
    listed = list(PAGES)
    if policy().may(user, "queues.change"):
        listed.append(("queues:create", gettext_lazy("New queue"), "queues"))
    if user.is_staff:
        listed.append(("admin:index", gettext_lazy("Admin"), "admin"))
    wanted = text.lower()
    return Group(
        _("Pages"), [Found(str(name), reverse(view), icon=icon) for view, name, icon in listed if wanted in str(name).lower()]
    )


def jobs(user: Any, text: str, limit: int) -> Group:
    """Jobs by name (`namespace/name` too), uid, or owner; the newest first. For no text: the reader's own."""
    visible = policy().visible(user, Job.objects.filter(deleted_at=None)).order_by("-created_at")
    if not text:
        return Group(_("Your jobs"), [_job(job) for job in _light(visible.filter(owner=user.get_username()))[:limit]])
    namespace, slash, name = text.partition("/")
    if slash:
        matching = visible.filter(namespace__iexact=namespace, name__icontains=name)
    else:
        matching = visible.filter(name__icontains=text) | visible.filter(owner__iexact=text) | visible.filter(uid=text)
    found = list(_light(matching)[: limit + 1])
    more = f"{reverse('jobs:list')}?{urlencode({'q': name if slash else text})}" if len(found) > limit else ""
    return Group(_("Jobs"), [_job(job) for job in found[:limit]], more)


def _light(rows: QuerySet[Job]) -> QuerySet[Job]:
    return rows.only("uid", "name", "namespace", "queue", "owner", "phase", "group_phase", "created_at")


def _job(job: Job) -> Found:
    detail = f"{job.namespace} · {job.queue}" + (f" · {job.owner}" if job.owner else "")
    mark = job_mark(job.phase, job.group_phase)
    return Found(job.name, reverse("jobs:detail", args=[job.uid]), detail, state=mark, phase=job.phase)


def named(user: Any, rows: QuerySet[Any], text: str, limit: int, found: Callable[[Any], Found]) -> list[Found]:
    """Rows whose name contains the text, those that begin with it first."""
    matching = policy().visible(user, rows.filter(deleted_at=None, name__icontains=text)).order_by("name")
    ahead = text.lower()
    some: Iterable[Any] = sorted(matching[: limit * 8], key=lambda row: (not row.name.lower().startswith(ahead), row.name))
    return [found(row) for row in list(some)[:limit]]


def groups(user: Any, text: str, limit: int) -> list[Group]:
    """All that fits the text, by kind; kinds with nothing are left out. A constant number of statements."""
    listed = [jobs(user, text, limit), pages(user, text)]
    if text:
        listed += [
            Group(_("Queues"), named(user, Queue.objects.only("name", "parent"), text, limit, _queue)),
            Group(_("Nodes"), named(user, Node.objects.only("name", "gpu_model", "gpu_count", "rack"), text, limit, _node)),
            Group(_("Flows"), named(user, JobFlow.objects.only("uid", "name", "namespace"), text, limit, _flow)),
            Group(_("Cron jobs"), named(user, CronJob.objects.only("uid", "name", "namespace"), text, limit, _cron)),
        ]
    return [group for group in listed if group.things]


def _queue(queue: Queue) -> Found:
    parent = queue.parent if queue.parent and queue.parent != "root" else ""
    return Found(queue.name, reverse("queues:detail", args=[queue.name]), parent, icon="queues")


def _node(node: Node) -> Found:
    cards = f"{node.gpu_model} × {node.gpu_count}" if node.gpu_count else ""
    return Found(node.name, reverse("cluster:node", args=[node.name]), " · ".join(filter(None, (cards, node.rack))), icon="nodes")


def _flow(flow: JobFlow) -> Found:
    return Found(flow.name, reverse("jobs:flow", args=[flow.uid]), flow.namespace, icon="flows")


def _cron(cron: CronJob) -> Found:
    return Found(cron.name, reverse("jobs:cron", args=[cron.uid]), cron.namespace, icon="cron")


@require_safe
@vary_on_headers("HX-Request")
def find(request: HttpRequest) -> HttpResponse:
    """What the text fits: below the search box while one types, else as a page."""
    text = " ".join(request.GET.get("q", "").replace("\x00", "").split())[:TEXT_LIMIT]
    is_part = "HX-Request" in request.headers
    found = groups(request.user, text, SHOWN if is_part else SHOWN_WHOLE)
    return render(request, "portal/found.html" if is_part else "portal/find.html", {"groups": found, "text": text})
