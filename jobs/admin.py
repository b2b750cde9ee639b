"""Jobs and pods in the admin: to look at and to search; people act on jobs on their pages."""

from __future__ import annotations

from django.contrib import admin

from cluster.admin import ReadOnlyAdmin
from jobs.models import Job, Pod, PodGroup


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
