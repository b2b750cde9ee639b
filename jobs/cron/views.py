"""Pages of cron jobs: the list, one of them, and what people may do with it."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from cluster.access import policy
from cluster.errors import ApiError
from cluster.kinds import CRON_JOB
from cluster.said import words
from jobs import owned
from jobs.cron import pages, writes
from jobs.cron.models import CronJob
from jobs.cron.operations import ACTIONS
from jobs.cron.projection import project_crons
from jobs.owned_views import PAGE, found, matching
from jobs.pages import yamlview


@require_safe
def cron_list(request: HttpRequest) -> HttpResponse:
    """Which jobs run by schedule, when next, and did they last succeed?"""
    rows = policy().visible(request.user, CronJob.objects.filter(deleted_at=None))
    total, text = rows.count(), request.GET.get("q", "")[:200]
    page = Paginator(matching(rows, text), PAGE).get_page(request.GET.get("page"))
    for cron in page.object_list:
        pages.decorated(cron)
    return render(request, "crons/list.html", {"page": page, "total": total, "q": text})


@require_safe
def cron_detail(request: HttpRequest, uid: str) -> HttpResponse:
    """When does it run, what became of the last runs, and what happened?"""
    cron = found(request, CronJob, uid)
    context = pages.shown(cron) | {
        "may_act": policy().may(request.user, "jobs.act", cron) and cron.deleted_at is None,
        "yaml": list(yamlview.lines(yamlview.dump(cron.manifest))),
    }
    return render(request, "crons/detail.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def cron_action(request: HttpRequest, uid: str, action: str) -> HttpResponseBase:
    """Suspend, resume, run now; or delete, which is asked first."""
    cron = found(request, CronJob, uid)
    if not policy().may(request.user, "jobs.act", cron):
        raise PermissionDenied(_("Only its owner and administrators may do this."))
    if action not in (*ACTIONS, "delete"):
        raise Http404
    if request.method != "POST":
        if action != "delete":
            return redirect("jobs:cron", uid)
        asked = _("The cron job goes with all jobs that it made; those that run are ended.")
        return render(request, "flows/confirm.html", {"row": cron, "words": asked, "view": "jobs:cron", "list": "jobs:crons"})
    try:
        if action == "delete":
            owned.delete(CRON_JOB, cron.namespace, cron.name, cron.uid, project_crons)
            messages.success(request, _("%(name)s was deleted.") % {"name": cron.name})
            return redirect("jobs:crons")
        obj = writes.act(cron, action, request.user.get_username())
    except ApiError as error:
        messages.error(request, words(error.message))
    else:
        messages.success(request, _done(action) % {"name": obj["metadata"]["name"]})
    return redirect("jobs:cron", uid)


def _done(action: str) -> str:
    if action == "suspend":
        return _("%(name)s is suspended: it starts no more runs.")
    if action == "resume":
        return _("%(name)s runs by its schedule again.")
    return _("Run %(name)s was started.")
