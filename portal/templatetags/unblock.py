"""What would unblock a job, on the job's page, which knows nothing of the copy that is asked."""

from __future__ import annotations

from django import template
from django.template import Context
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from jobs.models import Job
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
