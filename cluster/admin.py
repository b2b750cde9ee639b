"""Nodes in the admin: to look at, since the cluster alone changes them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from cluster.models import HyperNode, Node


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[misc]
    """Rows that are projected from the cluster: nothing is added, changed or deleted here."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).filter(deleted_at=None)


@admin.register(Node)
class NodeAdmin(ReadOnlyAdmin):
    """Machines."""

    list_display = ("name", "ready", "cordoned", "draining", "gpu_model", "gpu_count", "rack", "spine", "seen_at")
    list_filter = ("ready", "cordoned", "draining", "gpu_model", "spine")
    search_fields = ("name", "rack")
    ordering = ("name",)


@admin.register(HyperNode)
class HyperNodeAdmin(ReadOnlyAdmin):
    """Network domains."""

    list_display = ("name", "tier", "tier_name", "created_at")
    list_filter = ("tier",)
    search_fields = ("name",)
