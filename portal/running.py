"""What runs in this process, for views that have to know: the parts, where `manage.py run` started them."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from cluster.access import policy
from portal import workload
from portal.parts import Parts

NAME = "workload"
parts: Parts | None = None


def use(found: Parts | None) -> None:
    """Set by the run command."""
    global parts
    parts = found


def start_workload(found: Parts, seed: int = 1) -> bool:
    """Start the stream of sample jobs, once; whether it was started now."""
    if found.is_running(NAME):
        return False
    found.add(NAME, workload.stream(found.cluster, found.clock, seed))
    return True


@require_POST
def workload_view(request: HttpRequest) -> HttpResponse:
    """The empty overview's button."""
    if not policy().may(request.user, "workload.start"):
        raise PermissionDenied("Only cluster admins start the sample workload.")
    if parts is None:
        raise Http404("This process runs no cluster of its own.")
    start_workload(parts)
    return HttpResponseRedirect(reverse("overview"))
