"""The columns that a job list may have: each with its head, its cell, its order and what it gives to an export."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from jobs.models import ListColumns

Text = str | Promise


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `cell` is the template of its `td`, `sort` the name of its order, `fields` what an export has of it.

    `head` replaces the title in the table where that is more than words.
    """

    name: str
    title: Text
    fields: tuple[str, ...]
    sort: str = ""
    classes: str = ""
    head: str = ""

    @property
    def cell(self) -> str:
        """The template of its cells."""
        return f"jobs/cells/{self.name}.html"


COLUMNS: dict[str, Column] = {
    column.name: column
    for column in (
        Column("state", _("State"), ("phase", "state"), "state"),
        Column("name", _("Job"), ("name",), "name"),
        Column("namespace", _("Namespace"), ("namespace",), classes="hide-md"),
        Column("queue", _("Queue, owner"), ("queue", "owner"), "queue", "hide-md"),
        Column("labels", _("Labels"), ("labels",), classes="hide-md"),
        Column(
            "pods",
            pgettext_lazy("column", "Pods"),
            ("replicas", "min_available", "pending", "running", "succeeded", "failed"),
            head="jobs/cells/pods_head.html",
        ),
        Column("gpus", _("GPUs"), ("gpus", "gpu_model"), "gpus", "num"),
        Column("cpu", _("CPU"), ("cpu_milli",), classes="num hide-md"),
        Column("memory", _("Memory"), ("memory_bytes",), classes="num hide-md"),
        Column("priority", _("Priority"), ("priority_class",), classes="hide-md"),
        Column("retries", _("Retries"), ("retry_count", "max_retry"), classes="num hide-md"),
        Column("since", _("In state"), ("phase_since",), "since", "num"),
        Column("why", _("Why, or what next"), ("why",), classes="wide"),
        Column("start", _("Start P50 – P90"), ("start_p50", "start_p90"), classes="num hide-md c-start"),
        Column("created", _("Submitted"), ("created_at",), "created", "num hide-xl"),
        Column("started", _("Started"), ("started_at",), classes="num hide-md"),
        Column("finished", _("Ended"), ("finished_at",), "finished", "num hide-md"),
    )
}
USUAL = ("state", "name", "queue", "pods", "gpus", "since", "why", "start", "created")


def chosen(user: AbstractBaseUser | AnonymousUser, asked: Iterable[str]) -> list[Column]:
    """The columns of a list: those that the address names, else those that the user keeps, else the usual ones."""
    names = tuple(asked) or kept(user) or USUAL
    return [column for name, column in COLUMNS.items() if name in names or name == "name"]


def kept(user: AbstractBaseUser | AnonymousUser) -> tuple[str, ...]:
    """The columns that a user has chosen for good; empty when none were."""
    found = ListColumns.objects.filter(user_id=user.pk).values_list("columns", flat=True).first()
    return tuple(name for name in found or () if name in COLUMNS)


def keep(user: AbstractBaseUser | AnonymousUser, names: Iterable[str]) -> None:
    """Choose columns for good; none, or exactly the usual ones, is no choice any more."""
    wanted = [name for name in COLUMNS if name in set(names)]
    if not wanted or tuple(wanted) == USUAL:
        ListColumns.objects.filter(user_id=user.pk).delete()
    else:
        ListColumns.objects.update_or_create(user_id=user.pk, defaults={"columns": wanted})
