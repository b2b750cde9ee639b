"""The button of an empty overview that starts the stream of sample jobs."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from cluster.access import policy
from cluster.said import said
from portal import parts, samples


@require_POST
def start_samples(request: HttpRequest) -> HttpResponse:
    """Start the stream, where this process runs a cluster."""
    if not policy().may(request.user, "workload.start"):
        raise PermissionDenied(said("Only cluster admins start the sample workload."))
    here = parts.current()
    if here is None:
        raise Http404(said("This process runs no cluster of its own."))
    samples.start(here)
    return HttpResponseRedirect(reverse("overview"))
