"""What would unblock a job, on the job's page, which knows nothing of the copy that is asked."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from cluster.errors import ApiError
from cluster.port import Obj
from cluster.said import words
from jobs.models import Job
from portal.unblock import queue_preview
from portal.unblock.views import panel

register = template.Library()


@register.simple_tag(takes_context=True)
def unblock_of_job(context: Context, job: Job) -> SafeString:
    """The part as far as it is known; empty where it is drawn for nobody in particular: the page's script keeps its own."""
    request = context.get("request")
    return (
        SafeString(render_to_string("portal/unblock.html", panel(request.user, job), request))
        if request is not None
        else SafeString("")
    )


@register.inclusion_tag("portal/queue_impact_part.html", takes_context=True)
def queue_impact_of(context: Context, queue: Obj) -> dict[str, Any]:
    """What a queue would do as it would be written, tried on the copy; an error in words where that cannot be asked."""
    try:
        return queue_preview.told(context["request"].user, queue_preview.preview(queue))
    except ApiError as error:
        return {"error": words(error.message)}
