"""Pages of flows and templates: the lists, one of each, and what people may do with them."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from cluster.access import policy
from cluster.errors import ApiError
from cluster.kinds import JOB_FLOW, JOB_TEMPLATE
from cluster.said import words
from jobs import owned
from jobs.flows import pages
from jobs.flows.choices import FlowState
from jobs.flows.models import JobFlow, JobTemplate
from jobs.flows.projection import project_flows, project_templates
from jobs.owned_views import PAGE, found, matching
from jobs.pages import yamlview


@require_safe
def flow_list(request: HttpRequest) -> HttpResponse:
    """Which flows are there, and how far are they?"""
    rows = policy().visible(request.user, JobFlow.objects.filter(deleted_at=None))
    total, text, state = rows.count(), request.GET.get("q", "")[:200], request.GET.get("state", "")
    rows = matching(rows, text)
    if state in FlowState.values:
        rows = rows.filter(phase=state)
    page = Paginator(rows.defer("manifest"), PAGE).get_page(request.GET.get("page"))
    for flow in page.object_list:
        pages.decorated(flow)
    context = {"page": page, "total": total, "q": text, "state": state, "states": FlowState.choices, "tab": "flows"}
    return render(request, "flows/list.html", context)


@require_safe
def template_list(request: HttpRequest) -> HttpResponse:
    """Which templates can flows be made from?"""
    rows = policy().visible(request.user, JobTemplate.objects.filter(deleted_at=None))
    total, text = rows.count(), request.GET.get("q", "")[:200]
    page = Paginator(matching(rows, text).defer("manifest"), PAGE).get_page(request.GET.get("page"))
    return render(request, "flows/templates.html", {"page": page, "total": total, "q": text, "tab": "templates"})


@require_safe
def flow_detail(request: HttpRequest, uid: str) -> HttpResponse:
    """How far is it, what waits for what, and what happened?"""
    flow = found(request, JobFlow, uid)
    context = pages.shown(flow) | {
        "may_act": policy().may(request.user, "jobs.act", flow) and flow.deleted_at is None,
        "yaml": list(yamlview.lines(yamlview.dump(flow.manifest))),
    }
    return render(request, "flows/detail.html", context)


@require_safe
def template_detail(request: HttpRequest, uid: str) -> HttpResponse:
    """What is in a template, and which flows use it?"""
    template = found(request, JobTemplate, uid)
    context = {
        "template": template,
        "may_act": policy().may(request.user, "jobs.act", template) and template.deleted_at is None,
        "yaml": list(yamlview.lines(yamlview.dump(template.manifest))),
    }
    return render(request, "flows/template.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def flow_action(request: HttpRequest, uid: str, action: str) -> HttpResponseBase:
    """Delete a flow with its jobs; asked first."""
    flow = found(request, JobFlow, uid)
    asked = _("The flow goes with all jobs that it made; those that run are ended.")
    return _delete(request, flow, action, asked, ("jobs:flow", "jobs:flows"))


@require_http_methods(["GET", "HEAD", "POST"])
def template_action(request: HttpRequest, uid: str, action: str) -> HttpResponseBase:
    """Delete a template; asked first."""
    template = found(request, JobTemplate, uid)
    asked = _("Jobs that were made from the template stay. New flows cannot name it any more.")
    return _delete(request, template, action, asked, ("jobs:template", "jobs:templates"))


def _delete(request: HttpRequest, row: Any, action: str, asked: str, views: tuple[str, str]) -> HttpResponseBase:
    if not policy().may(request.user, "jobs.act", row):
        raise PermissionDenied(_("Only its owner and administrators may do this."))
    if action != "delete":
        raise Http404
    if request.method != "POST":
        return render(request, "flows/confirm.html", {"row": row, "words": asked, "view": views[0], "list": views[1]})
    kind, project = (JOB_FLOW, project_flows) if isinstance(row, JobFlow) else (JOB_TEMPLATE, project_templates)
    try:
        owned.delete(kind, row.namespace, row.name, row.uid, project)
    except ApiError as error:
        messages.error(request, words(error.message))
        return redirect(views[0], row.uid)
    messages.success(request, _("%(name)s was deleted.") % {"name": row.name})
    return redirect(views[1])
