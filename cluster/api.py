"""REST: nodes, to read and to act on, and events, to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import django_filters as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from cluster import machines, workloads
from cluster.kinds import EVENT, NODE
from cluster.models import Event, Node
from cluster.rest.labels import LabelSelectorFilter
from cluster.rest.views import ObjectViewSet, route
from cluster.rows import event_row, node_row
from cluster.workloads import Usage


class NodeFilter(filters.FilterSet):  # type: ignore[misc]
    """`name` is any part of it."""

    ready = filters.BooleanFilter()
    cordoned = filters.BooleanFilter()
    gpu_model = filters.CharFilter()
    rack = filters.CharFilter()
    name = filters.CharFilter(lookup_expr="icontains")
    labelSelector = LabelSelectorFilter()

    class Meta:
        model = Node
        fields = ("ready", "cordoned", "gpu_model", "rack", "name")


class NodeRow(serializers.ModelSerializer[Node]):
    """A machine in a list."""

    used = serializers.DictField(help_text="what its pods ask together, in smallest units; `pods` and `gpus` are their numbers")

    class Meta:
        model = Node
        exclude = ("resource_version", "deleted_at", "gpu_links")


class NodeViewSet(ObjectViewSet):
    """Machines by name."""

    kind = NODE
    queryset = Node.objects.defer("gpu_links")
    serializer_class = NodeRow
    filterset_class = NodeFilter
    ordering = "name"
    ordering_fields = ("name", "created_at", "gpu_count")
    rights: ClassVar = {"list": "nodes.view", "retrieve": "nodes.view", "act": "nodes.change"}

    def row(self, obj: Node) -> dict[str, Any]:
        return self.rows([obj])[0]

    def rows(self, page: Sequence[Any]) -> list[dict[str, Any]]:
        usage = workloads.current().usage([node.name for node in page])
        return [node_row(node) | {"used": _used(usage.get(node.name, Usage()))} for node in page]

    @extend_schema(request=None, responses={202: OpenApiTypes.OBJECT})
    def act(self, request: Request, name: str, action: str) -> Response:
        """Cordon or uncordon; lose or recover, where the machines are simulated."""
        machines.act(name, action)
        return Response(self.full(self.find(name=name)), status=status.HTTP_202_ACCEPTED)


def _used(usage: Usage) -> dict[str, int]:
    return {**usage.requests, "pods": usage.pods, "gpus": usage.gpus}


class EventFilter(filters.FilterSet):  # type: ignore[misc]
    """`about` is the uid of what the event is about; `kind` its kind."""

    namespace = filters.CharFilter()
    about = filters.CharFilter(field_name="about_uid")
    kind = filters.CharFilter(field_name="about_kind")
    name = filters.CharFilter(field_name="about_name", lookup_expr="icontains")
    type = filters.CharFilter()
    reason = filters.CharFilter()

    class Meta:
        model = Event
        fields = ("namespace", "about", "kind", "name", "type", "reason")


class EventRow(serializers.ModelSerializer[Event]):
    """An event in a list."""

    class Meta:
        model = Event
        exclude = ("resource_version", "deleted_at", "name")


class EventViewSet(ObjectViewSet):
    """What happened, newest first."""

    kind = EVENT
    queryset = Event.objects.all()
    serializer_class = EventRow
    filterset_class = EventFilter
    ordering = "-last_seen"
    ordering_fields = ("last_seen", "first_seen", "created_at")
    rights: ClassVar = {"list": "events.view", "retrieve": "events.view"}

    def row(self, obj: Event) -> dict[str, Any]:
        return event_row(obj)


urlpatterns = [
    *route("nodes", NodeViewSet, "nodes", get="list"),
    *route("nodes/<str:name>", NodeViewSet, "node", get="retrieve"),
    *route("nodes/<str:name>/actions/<str:action>", NodeViewSet, "node-action", post="act"),
    *route("events", EventViewSet, "events", get="list"),
    *route("events/<str:uid>", EventViewSet, "event", get="retrieve"),
]
