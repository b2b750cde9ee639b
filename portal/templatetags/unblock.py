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
from portal.outlook import questions
from portal.outlook import shown as foretold
from portal.outlook.questions import Question
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
        user = context["request"].user
        asked = questions.queue(queue)
        return (
            queue_preview.told(user, queue_preview.preview(queue)) | foretold.part(user, asked, foretold.PATIENT) | _form(context)
        )
    except ApiError as error:
        return {"error": words(error.message)}


@register.inclusion_tag("portal/outlook/part.html", takes_context=True)
def starts_after(context: Context, question: Question) -> dict[str, Any]:
    """How a change would move starts."""
    return foretold.part(context["request"].user, question, foretold.PATIENT) | _form(context)


def _form(context: Context) -> dict[str, Any]:
    """What a part needs for a form of its own."""
    return {name: context.get(name) for name in ("csrf_token", "request")}
