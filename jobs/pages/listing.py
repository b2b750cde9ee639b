"""Pages of the job list: the list itself, as rows or as groups; its exports; which columns somebody wants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from cluster import exports, runtime
from cluster.access import policy
from cluster.display import short_model
from jobs import reasons, starts, summary
from jobs.choices import job_mark
from jobs.models import Job
from jobs.pages import columns, export, queries
from jobs.pages.actions import ACTIONS
from jobs.pages.asked import GROUPS, STATE_ORDER, WINDOW_WORDS, Filter
from jobs.pages.facets import panels, state_words
from jobs.saved import shown as saved
from jobs.submit.preview import priorities

T = TypeVar("T")


class Known(Paginator):
    """A paginator that was told how many rows there are, and pages over one that was cut already."""

    def __init__(self, rows: Sequence[Any], count: int) -> None:
        super().__init__(rows, queries.PAGE_SIZE)
        self._count = count

    @cached_property
    def count(self) -> int:  # type: ignore[override]
        return self._count

    def page(self, number: int) -> Page[Any]:  # type: ignore[override]
        return Page(self.object_list, number, self)


@require_safe
def job_list(request: HttpRequest) -> HttpResponse:
    """Which jobs need me, and why? Filter, order and page are in the URL; htmx asks for the results alone."""
    if not request.GET and (first := saved.first_for(request.user)):
        return redirect(first.address)
    asked = Filter.of(request.GET)
    jobs = policy().visible(request.user, Job.objects.all())
    found = queries.facets(jobs, asked)
    context = {
        "asked": asked,
        "found": found,
        "panels": panels(found, asked),
        "windows": WINDOW_WORDS.items(),
        "groups": group_words().items(),
        "views": saved.views(request.user, request.GET),
        "table": columns.chosen(request.user, asked.columns),
        "all_columns": columns.COLUMNS.values(),
        "actions": ACTIONS.values(),
        "priorities": priorities(),
        "present": runtime.now(),
        "filter": without_place(request.GET),
    }
    context |= _grouped(jobs, asked) if asked.group else _rows(jobs, asked, found.matching, context["table"])
    part = request.headers.get("HX-Request") == "true" and request.headers.get("HX-History-Restore-Request") != "true"
    response = render(request, "jobs/results.html" if part else "jobs/list.html", context)
    response["Vary"] = "HX-Request, Cookie"
    return response


def _rows(jobs: Any, asked: Filter, matching: int, table: Sequence[columns.Column]) -> dict[str, Any]:
    rows = queries.listed(jobs, asked)
    foretold = starts.likely(rows) if any(column.name == "start" for column in table) else {}
    for job in rows:
        job.line = summary.line(job)  # type: ignore[attr-defined]
        job.mark = job_mark(job.phase, job.group_phase)  # type: ignore[attr-defined]
        job.up = job.running + job.succeeded  # type: ignore[attr-defined]
        job.impossible = reasons.is_impossible(job.verdict)  # type: ignore[attr-defined]
        job.start = foretold.get(job.uid)  # type: ignore[attr-defined]
    return {"page": Known(rows, matching).page(asked.page)}


def _grouped(jobs: Any, asked: Filter) -> dict[str, Any]:
    """The groups of a page, each with its words, its link and its counts."""
    rows = queries.groups(jobs, asked, STATE_ORDER)
    start = (asked.page - 1) * queries.PAGE_SIZE
    states = state_words()
    lines = [
        {"group": group, "label": _label(asked.group, group.value, states)} for group in rows[start : start + queries.PAGE_SIZE]
    ]
    return {"page": Known(lines, len(rows)).page(asked.page), "group_title": group_words()[asked.group], "states": states}


def _label(dimension: str, value: str, states: dict[str, str]) -> str:
    """What a group is called; empty for jobs that have no value of the dimension."""
    if dimension == "state":
        return states.get(value, value)
    return short_model(value) if dimension == "model" else value


def group_words() -> dict[str, str]:
    """What a list may be grouped by, in words."""
    words = {"state": _("State"), "queue": _("Queue"), "owner": _("Owner"), "namespace": _("Namespace"), "model": _("GPU model")}
    return {name: words[name] for name in GROUPS}


def without_place(query: QueryDict) -> str:
    """A list's address without what only says where in it one is: the same jobs."""
    kept = query.copy()
    for name in ("page", "sort", "view", "columns", "group", "uid"):
        kept.pop(name, None)
    return kept.urlencode()


@require_safe
def job_export(request: HttpRequest, form: str) -> StreamingHttpResponse:
    """The jobs (or groups) that the list shows, all pages of them, with its columns, as CSV or JSON."""
    asked = Filter.of(request.GET)
    jobs = policy().visible(request.user, Job.objects.all())
    language = get_language() or "en"
    if asked.group:
        rows = export.of_groups(queries.groups(jobs, asked, STATE_ORDER), asked.group)
    else:
        table = (
            list(columns.COLUMNS.values()) if request.GET.get("columns") == "all" else columns.chosen(request.user, asked.columns)
        )
        rows = export.of_jobs(asked.apply(jobs), table, language)
    return exports.answer(rows, "jobs", form)


@require_POST
def choose_columns(request: HttpRequest) -> HttpResponse:
    """Keep the columns that somebody wants; the address's own ones no longer count."""
    columns.keep(request.user, [] if request.POST.get("do") == "usual" else request.POST.getlist("columns"))
    query = QueryDict(request.POST.get("query", ""), mutable=True)
    query.pop("columns", None)
    return back(request, query.urlencode())


def back(request: HttpRequest, query: str) -> HttpResponseRedirect:
    """To the list with a query; a form's text goes nowhere else."""
    address = reverse("jobs:list") + (f"?{query}" if query else "")
    safe = url_has_allowed_host_and_scheme(address, allowed_hosts={request.get_host()})
    return redirect(address if safe else reverse("jobs:list"))
