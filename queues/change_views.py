"""What staff do with queues: make, change, open and close, delete."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from cluster import runtime
from cluster.errors import ApiError, Conflict, NotFound
from cluster.kinds import QUEUE
from cluster.port import Obj
from cluster.said import words
from queues import changes, operations, queries, writes
from queues.forms import NEW, QueueForm, flatten
from queues.operations import ACTIONS
from queues.views import check, visible_queue

BASIC = ("nvidia.com/gpu", "cpu", "memory")


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """A new queue."""
    check(request, "queues.change")
    if request.method == "GET":
        blank = {"spec": {"parent": request.GET.get("parent", queries.ROOT), "weight": 1, "reclaimable": True}}
        form = QueueForm.of(blank, _known(request))
        for each in form.inputs.values():
            each.was = ""
        return _form_page(request, form)
    form = QueueForm.posted(request.POST, _known(request))
    if _new_resource_lacks_name(form):
        return _form_page(request, form, status=422)
    try:
        obj = writes.create(form.manifest(), request.user.get_username())
    except ApiError as error:
        return _refused(request, form, error)
    name = obj["metadata"]["name"]
    messages.success(request, _("Queue %(name)s was created.") % {"name": name})
    return redirect("queues:detail", name)


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Change a queue: the form, then what would change and what that would do, then it is written (`step=save`).

    What somebody else changed since is shown, not overwritten.
    """
    queue = visible_queue(request, name)
    check(request, "queues.change", queue)
    try:
        current = runtime.current().get(QUEUE, name)
    except NotFound as error:
        raise Http404(name) from error
    if request.method == "GET":
        return _form_page(request, QueueForm.of(current, _known(request)))
    form = QueueForm.posted(request.POST, _known(request), name)
    step = request.POST.get("step", "")
    if step == "back":
        return _form_page(request, form)
    if _new_resource_lacks_name(form):
        return _form_page(request, form, status=422)
    if not form.patch():
        messages.info(request, _("Nothing was changed."))
        return redirect("queues:detail", name)
    _pass_over_status(form, current)
    try:
        if step != "save":
            new = operations.update(runtime.current(), name, form.patch(), resource_version=form.version, dry_run=True)
            return render(request, "queues/confirm.html", {"queue": queue, "form": form, "new": new, "told": form.told()})
        writes.update(name, form.patch(), form.version, request.user.get_username())
    except Conflict:
        return _conflict(request, form, name)
    except ApiError as error:
        return _refused(request, form, error)
    messages.success(request, _("Queue %(name)s was changed.") % {"name": name})
    return redirect("queues:detail", name)


@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, name: str) -> HttpResponse:
    """Ask, then delete."""
    queue = visible_queue(request, name)
    check(request, "queues.change", queue)
    error: ApiError | None = None
    if request.method == "POST":
        try:
            writes.delete(name, request.user.get_username())
        except ApiError as refused:
            error = refused
        else:
            messages.success(request, _("Queue %(name)s was deleted.") % {"name": name})
            return redirect("queues:list")
    context = {"queue": queue, "error": error}
    return render(request, "queues/delete.html", context, status=error.status if error else 200)


@require_POST
def action(request: HttpRequest, name: str, action: str) -> HttpResponse:
    """Open or close a queue."""
    queue = visible_queue(request, name)
    check(request, "queues.change", queue)
    if action not in ACTIONS:
        raise Http404(action)
    try:
        writes.act(name, action, request.user.get_username())
    except ApiError as error:
        messages.error(request, words(error.message))
    else:
        done = {"open": _("Queue %(name)s is being opened."), "close": _("Queue %(name)s is being closed.")}
        messages.success(request, done[action] % {"name": name})
    return redirect("queue_close" if request.POST.get("next") == "guide" else "queues:detail", name)


def _known(request: HttpRequest) -> list[str]:
    """The resources that the form offers without being told."""
    return list(dict.fromkeys([*BASIC, *queries.resources(queries.queues(request.user))]))


def _new_resource_lacks_name(form: QueueForm) -> bool:
    name = form.inputs["resource.new"]
    if not name.value and any(each.value for each in form.new_row):
        name.errors.append(_("Name the resource, for example example.com/fpga."))
        return True
    return False


def _form_page(request: HttpRequest, form: QueueForm, *, status: int = 200, **more: Any) -> HttpResponse:
    rows = queries.queues(request.user)
    parents = [row.name for row in rows if row.name != form.name]
    used = {
        bar.resource: bar for each in queries.tree(rows, form.resources, {}) if each.queue.name == form.name for bar in each.bars
    }
    return render(request, "queues/edit.html", {"form": form, "parents": parents, "used": used, **more}, status=status)


def _pass_over_status(form: QueueForm, current: Obj) -> None:
    """The version goes up with every count of jobs: whoever saw the spec as it is now has seen what there is to see."""
    now = flatten(current.get("spec") or {})
    seen = {key: each.was for key, each in form.inputs.items() if NEW not in key and key != "name" and each.was}
    if form.version and seen == {key: value for key, value in now.items() if value}:
        form.version = str(current["metadata"]["resourceVersion"])


def _refused(request: HttpRequest, form: QueueForm, error: ApiError) -> HttpResponse:
    form.blame(error.fields)
    if not error.fields:
        form.errors.append(words(error.message))
    return _form_page(request, form, status=error.status)


def _conflict(request: HttpRequest, form: QueueForm, name: str) -> HttpResponse:
    """Somebody saved in between: side by side what was, what they made of it and what this user wants; and who it was.

    Fields that they alone changed take their value; those that this user changed keep the user's, on top of theirs.
    """
    try:
        current = runtime.current().get(QUEUE, name)
    except NotFound as error:
        raise Http404(name) from error
    now = flatten(current.get("spec") or {})
    rows = [
        (each, each.was, now.get(key, ""), each.value if each.changed else now.get(key, ""))
        for key, each in form.inputs.items()
        if NEW not in key and key != "name" and (each.changed or now.get(key, "") != each.was)
    ]
    conflict = {
        "yours": form.version,
        "now": current["metadata"]["resourceVersion"],
        "rows": rows,
        "theirs": any(theirs != was for _each, was, theirs, _yours in rows),
        "touch": any(theirs not in (was, yours) and each.changed for each, was, theirs, yours in rows),
        "changes": changes.since(current["metadata"]["uid"], form.version),
    }
    for each, _was, theirs, yours in rows:
        each.value, each.was = yours, theirs
    form.version = str(current["metadata"]["resourceVersion"])
    return _form_page(request, form, status=409, conflict=conflict)
