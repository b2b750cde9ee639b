"""Who sees a blueprint and who changes it. Pages, REST, job pages and the admin ask here, nobody decides for themselves."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import Http404

from cluster.access import policy
from cluster.said import said
from jobs.blueprints.models import Audience, AudienceKind, Blueprint
from queues.models import Queue


def visible(user: Any) -> QuerySet[Blueprint]:
    """The blueprints that somebody may see: their own, those for everybody, and those whose audience they belong to.

    One that names groups is for their members; one that names queues, for those who see one of these queues. Administrators
    see all.
    """
    rows = policy().visible(user, Blueprint.objects.all())
    if not policy().may(user, "jobs.submit"):
        return rows.none()
    if policy().may(user, "blueprints.change"):
        return rows
    groups = list(user.groups.values_list("name", flat=True))
    seen = policy().visible(user, Queue.objects.filter(deleted_at=None)).order_by().values("name")
    is_mine = Q(owner=user.get_username())
    return rows.filter(is_mine | _open(AudienceKind.GROUP, groups) & _open(AudienceKind.QUEUE, seen))


def _open(kind: AudienceKind, values: Any) -> Q:
    """Whether the audience of a kind is nobody in particular, or has one of these in it."""
    named = Audience.objects.filter(blueprint=OuterRef("pk"), kind=kind)
    return ~Q(Exists(named)) | Q(Exists(named.filter(value__in=values)))


def find(user: Any, name: str) -> Blueprint:
    """The one of this name. Raises Http404 where there is none, or none for this user: nobody can tell which."""
    row = visible(user).filter(name=name).first()
    if row is None:
        raise Http404(said("There is no blueprint %(name)s.", name=name))
    return row


def may_change(user: Any, row: Blueprint) -> bool:
    """Its owner and administrators."""
    return policy().may(user, "blueprints.act", row)
