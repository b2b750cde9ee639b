"""REST: nodes, to read and to act on; their GPUs and events, to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import django_filters as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from cluster import machines, node_page, queries, workloads
from cluster.cards import STATES
from cluster.gpu_table import GpuFilter
from cluster.kinds import EVENT, NODE
from cluster.models import Event, Node
from cluster.rest.labels import LabelSelectorFilter
from cluster.rest.views import ObjectViewSet, route
from cluster.rows import event_row, gpu_row, node_row
from cluster.workloads import Usage


class NodeFilter(filters.FilterSet):  # type: ignore[misc]
    """`name` is any part of it."""

    ready = filters.BooleanFilter()
    cordoned = filters.BooleanFilter()
    draining = filters.BooleanFilter()
    gpu_model = filters.CharFilter()
    rack = filters.CharFilter()
    name = filters.CharFilter(lookup_expr="icontains")
    labelSelector = LabelSelectorFilter()

    class Meta:
        model = Node
        fields = ("ready", "cordoned", "draining", "gpu_model", "rack", "name")


class NodeRow(serializers.ModelSerializer[Node]):
    """A machine in a list."""

    used = serializers.DictField(help_text="what its pods ask together, in smallest units; `pods` and `gpus` are their numbers")

    class Meta:
        model = Node
        exclude = ("resource_version", "deleted_at", "conditions", "gpu_links")


class NodeSetsRow(serializers.Serializer[Any]):
    """Sets of a machine's GPUs. A set has `gpus`, its `slowest_link`, `bandwidth_gbs` of all its links and a `score` to 100."""

    node = serializers.CharField()
    known = serializers.BooleanField(help_text="whether the links between its GPUs are known")
    islands = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField()), help_text="joined by NVLink or XGMI"
    )
    free_sets = serializers.ListField(child=serializers.DictField(), help_text="`size` and the `set`, null: too few are free")
    held_sets = serializers.ListField(child=serializers.DictField(), help_text="whose, the `set`, and the `best` of its size")


class NodeViewSet(ObjectViewSet):
    """Machines by name."""

    kind = NODE
    queryset = Node.objects.defer("gpu_links")
    serializer_class = NodeRow
    filterset_class = NodeFilter
    ordering = "name"
    ordering_fields = ("name", "created_at", "gpu_count")
    rights: ClassVar = {"list": "nodes.view", "retrieve": "nodes.view", "sets": "nodes.view", "act": "nodes.change"}

    def row(self, obj: Node) -> dict[str, Any]:
        return self.rows([obj])[0]

    def rows(self, page: Sequence[Any]) -> list[dict[str, Any]]:
        usage = workloads.current().usage([node.name for node in page])
        return [node_row(node) | {"used": _used(usage.get(node.name, Usage()))} for node in page]

    @extend_schema(responses=NodeSetsRow)
    def sets(self, request: Request, name: str) -> Response:
        """NVLink islands, the set that a pod of each size would be given now, and the sets that pods hold."""
        node: Node = self.find(name=name)
        strip = queries.strips(request.user, [node])[0]
        return Response({"node": node.name} | node_page.as_json(node_page.sets(node, strip)))

    @extend_schema(request=None, responses={202: OpenApiTypes.OBJECT})
    def act(self, request: Request, name: str, action: str) -> Response:
        """Cordon or uncordon; lose or recover, where the machines are simulated."""
        machines.act(name, action, request.user.get_username())
        return Response(self.full(self.find(name=name)), status=status.HTTP_202_ACCEPTED)


def _used(usage: Usage) -> dict[str, int]:
    return {**usage.requests, "pods": usage.pods, "gpus": usage.gpus}


class GpuNodeFilter(filters.FilterSet):  # type: ignore[misc]
    """`name` is any part of a node's name, `q` of a node's, job's, queue's or user's; `state` is one of a GPU's."""

    name = filters.CharFilter(lookup_expr="icontains")
    gpu_model = filters.CharFilter()
    rack = filters.CharFilter()
    spine = filters.CharFilter()
    state = filters.ChoiceFilter(choices=[(state, state) for state in STATES], method="of_gpus")
    job = filters.CharFilter(method="of_gpus", help_text="a job's uid")
    q = filters.CharFilter(method="of_gpus")

    class Meta:
        model = Node
        fields = ("name", "gpu_model", "rack", "spine")

    def of_gpus(self, rows: Any, name: str, value: str) -> Any:
        """Nodes that have a GPU of which this holds."""
        asked = GpuFilter.of({name: value})
        return rows.filter(name__in=[strip.node.name for strip in asked.narrow(queries.fleet(self.request.user).strips)])


class GpuRow(serializers.Serializer[Any]):
    """A machine with its GPUs, as the heatmap shows it."""

    node = serializers.CharField()
    ready = serializers.BooleanField()
    cordoned = serializers.BooleanField()
    draining = serializers.BooleanField(help_text="cordoned, and its pods are to leave it")
    spine = serializers.CharField()
    rack = serializers.CharField()
    gpu_model = serializers.CharField()
    gpus = serializers.ListField(
        child=serializers.DictField(),
        help_text="by index: `state`, who holds it, since when, `share` (of 1000 parts), `load` (percent, null: not measured), "
        "`memory_mib`, and `parts` where several share a card",
    )


class GpuViewSet(ObjectViewSet):
    """GPUs by machine."""

    kind = NODE
    queryset = Node.objects.filter(gpu_count__gt=0).only(*queries.FLEET_COLUMNS, "created_at")
    serializer_class = GpuRow
    filterset_class = GpuNodeFilter
    ordering = "name"
    ordering_fields = ("name", "gpu_count")
    rights: ClassVar = {"list": "nodes.view", "counts": "nodes.view"}

    def row(self, obj: Any) -> dict[str, Any]:
        (strip,) = queries.strips(self.request.user, [obj])
        return gpu_row(strip)

    def rows(self, page: Sequence[Any]) -> list[dict[str, Any]]:
        asked = GpuFilter.of(self.request.query_params)
        return [gpu_row(strip) for strip in asked.narrow(queries.strips(self.request.user, page))]

    @extend_schema(responses=OpenApiTypes.OBJECT, filters=False)
    def counts(self, request: Request) -> Response:
        """How many GPUs are in which state: the figures of every page's head line."""
        fleet = queries.fleet(request.user)
        states = {state: fleet.counts[state] for state in STATES}
        whole = {"nodes": len(fleet.strips), "whole_nodes_free": fleet.whole_free}
        return Response({"total": fleet.total, "in_use": fleet.used, **whole, "states": states})


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
    *route("nodes/<str:name>/sets", NodeViewSet, "node-sets", get="sets"),
    *route("nodes/<str:name>/actions/<str:action>", NodeViewSet, "node-action", post="act"),
    *route("gpus", GpuViewSet, "gpus", get="list"),
    *route("gpus/counts", GpuViewSet, "gpu-counts", get="counts"),
    *route("events", EventViewSet, "events", get="list"),
    *route("events/<str:uid>", EventViewSet, "event", get="retrieve"),
]
