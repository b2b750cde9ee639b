"""Pages of queues: the tree with its shares, and one queue."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _

from cluster import exports, runtime
from cluster.access import policy
from queues import asked, by_model, changes, exported, history, queries
from queues.colours import categories
from queues.models import Queue
from queues.moments import moment

MODELS = "models"
"""Instead of a resource: GPUs by model."""
FORMS = ("csv", "json")


def queue_list(request: HttpRequest) -> HttpResponseBase:
    """The tree, all resources side by side or one in figures (`?resource=`), and shares over time; `?q=` narrows it, `?at=` picks
    a past minute, `?format=` makes it a file."""
    check(request, "queues.view")
    rows = queries.queues(request.user)
    names = queries.resources(rows)
    total = queries.capacity()
    form = request.GET.get("format", "")
    text = request.GET.get("q", "").strip()[:100]
    if form in FORMS:
        branches = queries.matching(queries.tree(rows, names, total), text)
        return exports.answer(exported.as_rows(branches, asks=settings.BASALT_SCHEDULER), "queues", form)
    wanted = request.GET.get("resource", "")
    chosen = wanted if wanted in names else ""
    shown = [chosen] if chosen else names[:5]
    everything = queries.tree(rows, shown, total)
    branches = queries.matching(everything, text) if text else everything
    context = {
        "branches": branches,
        "text": text,
        "label_form": queries.label_form(limited=True),
        "label_form_free": queries.label_form(limited=False),
        "is_ours": settings.BASALT_SCHEDULER,
        "resources": names,
        "shown": shown,
        "chosen": chosen,
        "may_change": policy().may(request.user, "queues.change"),
        **_models(branches, total, wanted),
        **_over_time(request, rows, names, chosen or names[0], total),
    }
    if not context["by_model"]:
        context["live"] = queries.tree_json(rows, everything, shown, total)
    return render(request, "queues/list.html", context)


def _models(branches: list[queries.Branch], total: Any, wanted: str) -> dict[str, Any]:
    """GPUs by model, where there are several models and somebody asks for them."""
    gpu = queries.main_gpu(total)
    fleet = by_model.models(gpu)
    asked_for = wanted == MODELS and len(fleet) > 1
    return {"models": fleet if len(fleet) > 1 else {}, "by_model": by_model.cells(branches, gpu, fleet) if asked_for else None}


def _over_time(request: HttpRequest, rows: list[Queue], names: list[str], drawn: str, total: Any) -> dict[str, Any]:
    """Shares over time, and the minute that was picked."""
    leaves = [row.name for row in queries.leaves(rows)]
    named = list(categories(rows))
    others = [name for name in leaves if name not in named]
    window, until, at = _window(request)
    shares = history.shares_over_time(named, others, drawn, history.WINDOWS[window], until)
    capacity = total.get(drawn, 0) / history.divisor(drawn)
    return {
        "drawn": drawn,
        "history": shares,
        "chart": shares.as_json() | {"queues": leaves, "capacity": capacity},
        **_picked(request, at, drawn, None),
        **_frame(window, until),
    }


def detail(request: HttpRequest, name: str) -> HttpResponse:
    """One queue: its amounts, jobs, shares over time, events."""
    queue = visible_queue(request, name)
    rows = queries.queues(request.user)
    names = queries.resources(rows)
    branches = queries.tree(rows, names, queries.capacity())
    branch = next(each for each in branches if each.queue.name == name)
    chosen = request.GET.get("resource", "")
    drawn = chosen if chosen in names else names[0]
    window, until, at = _window(request)
    parents = {each.queue.name: each.above for each in branches}
    shares = history.queue_over_time(branch.names, drawn, history.WINDOWS[window], until, parents)
    words = {
        "allocated": _("allocated"),
        "inqueue": _("admitted, not placed"),
        "deserved": _("deserved"),
        "request": _("asked"),
    }
    context = {
        "queue": queue,
        "branch": branch,
        "share": max([queue.share, *(bar.allocated / bar.deserved for bar in branch.bars if bar.deserved)]),
        "is_told": settings.BASALT_SCHEDULER or any(bar.deserved for bar in branch.bars),
        "is_ours": settings.BASALT_SCHEDULER,
        "amounts": [(bar, queue.deserved.get(bar.resource)) for bar in branch.bars],
        "children": [each for each in branches if each.queue.parent == name and each.queue.name != name],
        "resources": names,
        "drawn": drawn,
        "history": shares,
        "chart": shares.as_json() | {"words": words, "queues": branch.names, "parents": parents},
        "words": words,
        "events": queries.events(queue),
        "history_of": changes.of(queue),
        "may_change": policy().may(request.user, "queues.change", queue),
        "closed_by_parent": queue.annotations.get("volcano.sh/closed-by-parent") == "true",
        **_picked(request, at, drawn, branch.names),
        **_frame(window, until),
    }
    return render(request, "queues/detail.html", context)


def check(request: HttpRequest, right: str, queue: Queue | None = None) -> None:
    """Raises PermissionDenied when the policy says no."""
    if not policy().may(request.user, right, queue):
        raise PermissionDenied


def visible_queue(request: HttpRequest, name: str) -> Queue:
    """The queue that there is of this name, if the user may see it. Raises Http404."""
    check(request, "queues.view")
    return get_object_or_404(policy().visible(request.user, Queue.objects.filter(deleted_at=None)), name=name)


def _window(request: HttpRequest) -> tuple[str, datetime, datetime | None]:
    """The window's name, its end, and the instant that was picked. A minute that lies before the window moves it."""
    wanted = request.GET.get("window", "")
    name = wanted if wanted in history.WINDOWS else asked.NORMAL
    now, at = runtime.now(), asked.instant(request.GET.get("at", ""))
    if at is not None:
        at = min(at, now)
    if at is None or at > now - history.WINDOWS[name]:
        return name, now, at
    return name, min(now, at + history.WINDOWS[name] / 2), at


def _frame(window: str, until: datetime) -> dict[str, Any]:
    is_live = runtime.now() - until < timedelta(seconds=5)
    return {"window": window, "windows": history.window_words(), "is_live": is_live}


def _picked(request: HttpRequest, at: datetime | None, drawn: str, names: list[str] | None) -> dict[str, Any]:
    """The minute that was picked, if any: its figures of the drawn resource."""
    if at is None:
        return {"moment": None, "misread": bool(request.GET.get("at"))}
    found = moment(request.user, at)
    figures = found.figures(drawn, names)
    return {"moment": found, "figures": figures, "changes": [each for each in figures if each.changed], "moment_names": names}
