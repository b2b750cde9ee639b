"""What the pages of flows, templates and cron jobs have in common."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest

from cluster.access import seen

PAGE = 50
"""Rows of a list."""


def matching(rows: QuerySet[Any], text: str) -> QuerySet[Any]:
    """Rows whose name, namespace or owner hold every word."""
    for word in text.split():
        rows = rows.filter(Q(name__icontains=word) | Q(namespace__icontains=word) | Q(owner__icontains=word))
    return rows


def found(request: HttpRequest, model: Any, uid: str) -> Any:
    """The row of this uid. Raises Http404 where there is none, or none for this user."""
    row = seen(request.user, model.objects.filter(uid=uid), "jobs.view")
    if row is None:
        raise Http404
    return row
