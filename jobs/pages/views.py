"""Pages of one job, and what people may do to it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from cluster import runtime
from cluster.access import policy, seen
from cluster.errors import ApiError
from cluster.said import words
from jobs import keys, operations, summary
from jobs.blueprints.shown import origin_of
from jobs.choices import job_mark
from jobs.models import CronJob, Job, JobFlow
from jobs.pages import comparing, lineage, parts, queries
from jobs.pages.actions import ACTIONS, DELETE, Action, may_now, offers
from jobs.pages.tabs import TABS


def _job(request: HttpRequest, uid: str) -> Job:
    job = seen(request.user, Job.objects.filter(uid=uid), "jobs.view")
    if job is None:
        raise Http404
    return job


@require_safe
def job_detail(request: HttpRequest, uid: str) -> HttpResponse:
    """Why does it wait, what happened, where are its pods?"""
    job = _job(request, uid)
    tab = request.GET.get("tab", "overview")
    if tab not in TABS:
        return redirect("jobs:detail", uid=uid)
    shown = queries.detail(job, policy().visible, request.user)
    context: dict[str, Any] = {
        "job": job,
        "mark": job_mark(job.phase, job.group_phase),
        "line": summary.line(job),
        "shown": shown,
        "tab": tab,
        "relatives": lineage.copies(job, policy().visible, request.user).count() + bool(job.cloned_from),
        "actions": offers(request.user, job),
        "present": runtime.now(),
        "runs": shown.runs,
        "is_over": parts.is_over(job),
        "maker": _maker(job),
        "blueprint": origin_of(request.user, job.uid) if keys.BLUEPRINT in _annotations(job) else None,
        "origin": next(iter(lineage.ancestors(job, policy().visible, request.user, most=1)), None),
    }
    context |= TABS[tab](request, job, shown)
    return render(request, "jobs/detail.html", context)


def _annotations(job: Job) -> dict[str, str]:
    """What the manifest says beside the rest: a hint, which saves looking for what is not there."""
    return (job.manifest.get("metadata") or {}).get("annotations") or {}


def _maker(job: Job) -> dict[str, str] | None:
    """The flow or cron job that made a job, and where its page is."""
    for model, view in ((JobFlow, "jobs:flow"), (CronJob, "jobs:cron")) if job.made_by else ():
        if found := model.objects.filter(uid=job.made_by).only("name").first():
            return {"name": found.name, "url": reverse(view, args=[job.made_by]), "kind": view.partition(":")[2]}
    return None


@require_safe
def job_compare(request: HttpRequest, uid: str, other: str) -> HttpResponse:
    """What was changed from one job to another: their manifests side by side, as their authors would have written them."""
    left, right = _job(request, uid), _job(request, other)
    pairs = comparing.compare(lineage.text_of(left), lineage.text_of(right))
    return render(request, "jobs/compare.html", {"left": left, "right": right, "pairs": pairs})


@require_safe
def job_by_name(request: HttpRequest, namespace: str, name: str) -> HttpResponseRedirect:
    """The newest job of a name."""
    jobs = policy().visible(request.user, Job.objects.filter(namespace=namespace, name=name))
    uid = jobs.order_by("-created_at").values_list("uid", flat=True).first()
    if uid is None:
        raise Http404
    return redirect("jobs:detail", uid=uid)


@require_http_methods(["GET", "HEAD", "POST"])
def job_action(request: HttpRequest, uid: str, action: str) -> HttpResponseBase:
    """Ask first where something ends (GET), then do it (POST) through the cluster's port."""
    job = _job(request, uid)
    chosen = ACTIONS.get(action)
    if chosen is None:
        raise Http404
    if not policy().may(request.user, "jobs.act", job):
        raise PermissionDenied(_("Only its owner and administrators may act on this job."))
    if not job.deleted_at and operations.is_done(action, job.phase):
        messages.info(request, _("Nothing to do: the job is so already."))
        return redirect("jobs:detail", uid=uid)
    if not may_now(request.user, job, chosen):
        messages.error(request, _("%(action)s is not possible in the state that the job is in.") % {"action": chosen.label})
        return redirect("jobs:detail", uid=uid)
    if request.method != "POST":
        mark = job_mark(job.phase, job.group_phase)
        return render(request, "jobs/confirm.html", {"job": job, "action": chosen, "mark": mark})
    return _act(request, job, chosen)


def _act(request: HttpRequest, job: Job, action: Action) -> HttpResponseBase:
    try:
        if action is DELETE:
            operations.delete(runtime.current(), job.namespace, job.name, uid=job.uid)
        else:
            user = request.user.get_username()
            operations.act(runtime.current(), job.namespace, job.name, action.name, uid=job.uid, user=user)
    except ApiError as error:
        messages.error(request, words(error.message))
    else:
        messages.success(request, action.done % {"name": job.name})
    return redirect("jobs:list") if action is DELETE else redirect("jobs:detail", uid=job.uid)
