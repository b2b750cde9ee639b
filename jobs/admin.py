"""Jobs and pods in the admin: to look at and to search; people act on jobs on their pages."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin

from cluster.admin import ReadOnlyAdmin
from jobs.blueprints import operations, shown
from jobs.models import Blueprint, Job, Pod, PodGroup


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    """Jobs of the cluster."""

    list_display = ("name", "namespace", "queue", "owner", "phase", "gpus", "created_at", "finished_at")
    list_filter = ("phase", "queue", "namespace")
    search_fields = ("name", "owner")
    exclude = ("manifest",)
    show_full_result_count = False


@admin.register(Pod)
class PodAdmin(ReadOnlyAdmin):
    """Pods of the cluster."""

    list_display = ("name", "namespace", "task", "index", "phase", "node", "gpus", "created_at")
    list_filter = ("phase", "queue")
    search_fields = ("name", "node")
    show_full_result_count = False


@admin.register(PodGroup)
class PodGroupAdmin(ReadOnlyAdmin):
    """Gangs."""

    list_display = ("name", "namespace", "queue", "phase", "min_member", "created_at")
    list_filter = ("phase", "queue")
    search_fields = ("name",)


@admin.register(Blueprint)
class BlueprintAdmin(ModelAdmin):  # type: ignore[misc]
    """Blueprints of everybody, for those who look after them: whose they are and which are offered.

    What one says is edited on its own page, where it becomes a version.
    """

    list_display = ("title", "name", "owner", "current", "uses", "used_at", "is_archived", "changed_at")
    list_filter = ("is_archived", "owner")
    search_fields = ("name", "title", "owner")
    fields = ("name", "title", "description", "current", "owner", "is_archived", "created_at", "changed_at")
    readonly_fields = ("name", "title", "description", "current", "created_at", "changed_at")
    actions = ("put_away", "bring_back")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """They are made on their own page."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: jobs that were made from them keep their version."""
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Blueprint]:
        return shown.with_use(super().get_queryset(request))

    def view_on_site(self, obj: Blueprint) -> str:
        """Its own page."""
        return reverse("jobs:blueprint", args=[obj.name])

    @admin.display(description=_("Jobs"), ordering="uses")
    def uses(self, obj: Any) -> int:
        """How many jobs were made from it."""
        return int(obj.uses)

    @admin.display(description=_("Last used"), ordering="used_at")
    def used_at(self, obj: Any) -> Any:
        """When the last was."""
        return obj.used_at

    @admin.action(description=_("Archive the chosen ones"))
    def put_away(self, request: HttpRequest, rows: QuerySet[Blueprint]) -> None:
        """Offer them no more."""
        for row in rows:
            operations.archive(request.user, row, is_archived=True)

    @admin.action(description=_("Offer the chosen ones again"))
    def bring_back(self, request: HttpRequest, rows: QuerySet[Blueprint]) -> None:
        """Offer them again."""
        for row in rows:
            operations.archive(request.user, row, is_archived=False)
