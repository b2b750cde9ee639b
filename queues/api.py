"""REST: queues. Everybody signed in sees them; who may change them is the policy's word."""

from __future__ import annotations

from typing import Any, ClassVar

import django_filters as filters
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from cluster import runtime
from cluster.errors import FieldError, Invalid
from cluster.kinds import QUEUE
from cluster.rest.idempotency import once
from cluster.rest.labels import LabelSelectorFilter
from cluster.rest.parsers import only
from cluster.rest.problems import about
from cluster.rest.views import Manifest, ObjectViewSet, QuestionViewSet, is_dry_run, route
from cluster.said import said
from queues import asked, operations, queries, writes
from queues.choices import QueueState
from queues.fairness import as_json, report
from queues.models import Queue
from queues.rows import queue_row

Body = dict[str, Any]
OVER_TIME = [
    OpenApiParameter("resource", str, description="the first of those that queues speak of, unless it is given"),
    OpenApiParameter("window", str, description="up to now: 1h (unless another is given), 6h, 24h, 7d"),
    OpenApiParameter("from", str, description="an instant instead of a window"),
    OpenApiParameter("to", str, description="with `from`; now unless it is given"),
]


class QueueFilter(filters.FilterSet):
    """`name` is any part of it."""

    parent = filters.CharFilter()
    state = filters.MultipleChoiceFilter(choices=QueueState.choices)
    name = filters.CharFilter(lookup_expr="icontains")
    labelSelector = LabelSelectorFilter()

    class Meta:
        model = Queue
        fields = ("parent", "state", "name")


class QueueRow(serializers.ModelSerializer[Queue]):
    """A queue in a list."""

    class Meta:
        model = Queue
        exclude = ("deleted_at", "labels", "annotations")


class QueueViewSet(ObjectViewSet):
    """Queues by name."""

    kind = QUEUE
    queryset = Queue.objects.all()
    serializer_class = QueueRow
    filterset_class = QueueFilter
    ordering = "name"
    ordering_fields = ("name", "created_at", "weight", "share")
    rights: ClassVar = {
        "list": "queues.view",
        "retrieve": "queues.view",
        "create": "queues.change",
        "partial_update": "queues.change",
        "destroy": "queues.change",
        "act": "queues.change",
    }

    def row(self, obj: Queue) -> Body:
        return queue_row(obj)

    @extend_schema(request=Manifest, responses={201: OpenApiTypes.OBJECT})
    def create(self, request: Request) -> Response:
        """Create a queue from its manifest."""
        document = only(request.data)
        with about(document):
            if is_dry_run(request):
                obj = operations.create(runtime.current(), document.obj, dry_run=True)
                return Response({"dryRun": True, "manifest": obj})
            return once(request, lambda: self._create(document.obj, request.user.get_username()))

    def _create(self, manifest: Body, user: str) -> Response:
        obj = writes.create(manifest, user)
        queue = Queue.objects.get(pk=obj["metadata"]["uid"])
        where = reverse("api:queue", args=[queue.name])
        return Response(self.full(queue), status=status.HTTP_201_CREATED, headers={"Location": where})

    @extend_schema(request=Manifest, responses={200: OpenApiTypes.OBJECT})
    def partial_update(self, request: Request, name: str) -> Response:
        """Change the spec by a merge patch `{"spec": …}`; `metadata.resourceVersion` in it guards against others' changes."""
        document = only(request.data)
        with about(document):
            meta = document.obj.get("metadata") or {}
            if not isinstance(meta, dict):
                raise Invalid("", [FieldError("/metadata", said("must be a mapping"), "type")])
            user = request.user.get_username()
            writes.update(name, document.obj.get("spec") or {}, str(meta.get("resourceVersion") or ""), user)
        return Response(self.full(self.find(name=name)))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, name: str) -> Response:
        """Delete a queue that has no children and no work."""
        writes.delete(name, request.user.get_username())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=None, responses={202: OpenApiTypes.OBJECT})
    def act(self, request: Request, name: str, action: str) -> Response:
        """Open or close."""
        writes.act(name, action, request.user.get_username())
        return Response(self.full(self.find(name=name)), status=status.HTTP_202_ACCEPTED)


class FairnessViewSet(QuestionViewSet):
    """Who got what."""

    kind = QUEUE
    queryset = Queue.objects.all()
    serializer_class = QueueRow
    rights: ClassVar = {"report": "queues.view"}

    @extend_schema(parameters=OVER_TIME, responses={200: OpenApiTypes.OBJECT})
    def report(self, request: Request) -> Response:
        """What each queue deserved, asked for, received, waited for, borrowed and lent over a window, in hours of the resource
        (GPUs, CPUs, GiB), and Jain's index of how even that was. Time of which nothing is known counts for nobody."""
        names = queries.resources(queries.queues(request.user))
        window = asked.window(request.query_params, runtime.now())
        found = report(request.user, asked.resource(request.query_params, names), window.begin, window.end)
        return Response(as_json(found))


urlpatterns = [
    *route("fairness", FairnessViewSet, "fairness", get="report"),
    *route("queues", QueueViewSet, "queues", get="list", post="create"),
    *route("queues/<str:name>", QueueViewSet, "queue", get="retrieve", patch="partial_update", delete="destroy"),
    *route("queues/<str:name>/actions/<str:action>", QueueViewSet, "queue-action", post="act"),
]
