"""Which saved views somebody sees above the job list, and which of them is on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _

from jobs.saved.models import Role, SavedView

INLINE = 4
"""Saved views that stand beside the built-in ones; the others are in the menu."""


@dataclass(frozen=True, slots=True)
class Tab:
    """One view in the row above the list."""

    label: str
    query: str
    is_on: bool
    view: SavedView | None = None

    @classmethod
    def of(cls, view: SavedView, *, is_on: bool) -> Tab:
        """A view that was kept; the list's address names it."""
        return cls(view.name, f"{view.query}&view={view.pk}".lstrip("&"), is_on, view)

    @property
    def address(self) -> str:
        """Where it leads."""
        return f"{reverse('jobs:list')}?{self.query}"


@dataclass(frozen=True, slots=True)
class Views:
    """All views of somebody: built in, saved beside them, and those in the menu; `current` is the saved one that is on."""

    tabs: list[Tab]
    more: list[Tab]
    current: SavedView | None
    is_changed: bool
    """Whether the list asks for something else than the view that its address names."""


def visible(user: Any) -> QuerySet[SavedView]:
    """The views that somebody may use: their own and those that are shared."""
    return SavedView.objects.filter(Q(owner_id=user.pk) | Q(is_shared=True)).select_related("owner")


def views(user: Any, query: QueryDict) -> Views:
    """What stands above a list with this query."""
    asked, named = canonical(query), query.get("view", "")
    built_in = [
        (_("All"), "view=all"),
        (_("Waiting"), "state=pending&state=inqueue&sort=since"),
        (_("My jobs"), _encoded("owner", user.get_username())),
        (_("Failed"), "state=failed&sort=-since"),
    ]
    saved = list(visible(user))
    current = next((view for view in saved if str(view.pk) == named), None)
    tabs = [Tab(label, text, current is None and canonical(QueryDict(text)) == asked) for label, text in built_in]
    found = [Tab.of(view, is_on=view is current) for view in saved]
    changed = current is not None and canonical(QueryDict(current.query)) != asked
    return Views([*tabs, *found[:INLINE]], found[INLINE:], current, changed)


def canonical(query: QueryDict) -> str:
    """What of a query makes a view: everything but the page and the view's own name, in one order."""
    pairs = [(key, value) for key, values in query.lists() for value in values if key not in ("page", "view", "uid") and value]
    kept = QueryDict(mutable=True)
    for key, value in sorted(pairs):
        kept.appendlist(key, value)
    return kept.urlencode()


def first_for(user: Any) -> Tab | None:
    """The view that somebody of this rank is shown who asks for nothing; administrators fall back on everybody's."""
    roles = [Role.STAFF, Role.USER] if user.is_staff else [Role.USER]
    found = {view.default_for: view for view in SavedView.objects.filter(default_for__in=roles, is_shared=True)}
    view = next((found[role] for role in roles if role in found), None)
    return Tab.of(view, is_on=True) if view else None


def _encoded(key: str, value: str) -> str:
    query = QueryDict(mutable=True)
    query[key] = value
    return query.urlencode()
