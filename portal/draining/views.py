"""The guided page: what is inside a queue, closing it, emptying it, deleting it. Each step works without a script."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from cluster.access import policy
from portal.draining.contents import contents
from portal.draining.moving import MOST, move, waiting
from queues.models import Queue
from queues.queries import ROOT
from queues.tree import BUILT_IN


@require_safe
def close(request: HttpRequest, name: str) -> HttpResponse:
    """What is inside, and the steps that are left."""
    queue = _queue(request, name)
    found = contents(request.user, queue)
    context = {"queue": queue, "found": found, "is_built_in": name in BUILT_IN, "is_root": name == ROOT, "most": MOST}
    return render(request, "portal/close_queue.html", context)


@require_http_methods(["POST"])
def move_jobs(request: HttpRequest, name: str) -> HttpResponse:
    """Move the waiting jobs to another queue, and say what became of each."""
    queue = _queue(request, name)
    target = request.POST.get("queue", "")
    if target not in contents(request.user, queue).targets:
        messages.error(request, _("Choose an open queue that holds no queues."))
        return redirect("queue_close", name)
    moved = move(request.user, waiting(request.user, name), target)
    return render(request, "portal/moved_jobs.html", {"queue": queue, "target": target, "moved": moved})


def _queue(request: HttpRequest, name: str) -> Queue:
    if not policy().may(request.user, "queues.view"):
        raise PermissionDenied
    queue = get_object_or_404(policy().visible(request.user, Queue.objects.filter(deleted_at=None)), name=name)
    if not policy().may(request.user, "queues.change", queue):
        raise PermissionDenied
    return queue
