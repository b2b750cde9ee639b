"""Who may see and do what: the one object that every page, API view and live topic asks.

The policy is named by a settings path, so that the lower rooms can ask it without importing the portal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeVar

from django.conf import settings
from django.core.signals import setting_changed
from django.db.models import Model, QuerySet
from django.utils.module_loading import import_string

M = TypeVar("M", bound=Model)
ALL = "all"


@dataclass(frozen=True, slots=True)
class Owned:
    """A thing that is no row, as a policy is asked about it: whose it is, and what to call it."""

    owner: str
    what: str = "something"

    def __str__(self) -> str:
        return f"{self.what} of {self.owner or 'nobody'}"


class Policy(Protocol):
    """Answers about one user. Actions are `<things>.<verb>`: `jobs.view`, `jobs.act`, `queues.change`, …"""

    def visible(self, user: Any, queryset: QuerySet[M]) -> QuerySet[M]:
        """The rows that this user may see; lists are narrowed by it before they are paged."""
        ...

    def may(self, user: Any, action: str, obj: Any = None) -> bool:
        """Whether the user may do the action, to `obj` where it is about one thing. Unknown actions are refused."""
        ...

    def rights(self, user: Any) -> str:
        """A key that is equal for users who see the same rows: what was encoded for one serves them all.

        It is `ALL` for those who see every row.
        """
        ...


@cache
def policy() -> Policy:
    """The policy that settings.BASALT_POLICY names."""
    made: Policy = import_string(settings.BASALT_POLICY)()
    return made


def seen(user: Any, queryset: QuerySet[M], action: str) -> M | None:
    """The one row that the queryset is narrowed to; None where there is none, or none that this user may do the action to."""
    row = policy().visible(user, queryset).first()
    return row if row is not None and policy().may(user, action, row) else None


def _forget(*, setting: str, **_: Any) -> None:
    if setting == "BASALT_POLICY":
        policy.cache_clear()


setting_changed.connect(_forget)
