"""REST: what a drain of nodes would do, drains begun, followed and cancelled. The facts of the pages."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.http import Http404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from cluster.errors import BadRequest, FieldError
from cluster.rest.idempotency import once
from cluster.rest.parsers import JSONParser
from cluster.rest.views import Allowed, route
from cluster.said import said
from portal.maintenance import acts, asked, progress
from portal.maintenance.models import Drain, DrainState
from portal.maintenance.preview import as_json, preview
from portal.outlook import shown
from portal.outlook.questions import drain as drain_question

NEWEST = 100


class Wanted(serializers.Serializer[Any]):
    """What is asked of a drain."""

    nodes = serializers.ListField(child=serializers.CharField())
    reason = serializers.CharField(help_text="why; it stands in the events of the nodes and of their jobs")
    mode = serializers.ChoiceField(["evict", "wait", "wait-then-evict"], required=False)
    in_turn = serializers.BooleanField(required=False, help_text="one node after another")
    bare = serializers.BooleanField(required=False, help_text="evict pods too that nobody makes again")
    local_data = serializers.BooleanField(required=False, help_text="evict pods too that keep data on the node (emptyDir)")
    deadline = serializers.DateTimeField(required=False)
    deadline_in = serializers.CharField(required=False, help_text="the same from now on, such as 2h30m")


class DrainViewSet(ViewSet):
    """Drains of nodes."""

    permission_classes = (IsAuthenticated, Allowed)
    parser_classes = (JSONParser,)
    serializer_class = Wanted
    rights: ClassVar = {
        "list": "nodes.view",
        "retrieve": "nodes.view",
        "look": "nodes.change",
        "create": "nodes.change",
        "cancel": "nodes.change",
    }

    def right(self) -> str | None:
        """The right that the action takes; which nodes it is about is asked later."""
        return self.rights.get(self.action or "", "nobody")

    @extend_schema(
        responses={200: OpenApiTypes.OBJECT}, parameters=[OpenApiParameter("node", str), OpenApiParameter("state", str)]
    )
    def list(self, request: Request) -> Response:
        """The newest drains; `?node=` of one node, `?state=` in one state."""
        if unknown := sorted(set(request.query_params) - {"node", "state"}):
            raise BadRequest(said("there is no such filter"), [FieldError(f"?{name}", said("is not known")) for name in unknown])
        found, wanted = acts.seen(request.user), request.query_params
        if "node" in wanted:
            found = found.filter(nodes__node=wanted["node"].replace("\x00", ""))
        if "state" in wanted:
            if wanted["state"] not in DrainState.values:
                text = said("must be one of %(known)s", known=", ".join(DrainState.values))
                raise BadRequest(said("there is no such state"), [FieldError("?state", text, "choice")])
            found = found.filter(state=wanted["state"])
        return Response({"results": [progress.row(drain) for drain in found[:NEWEST]]})

    @extend_schema(responses={200: OpenApiTypes.OBJECT}, parameters=[OpenApiParameter("node", str, many=True, required=True)])
    def look(self, request: Request) -> Response:
        """What a drain of nodes (`?node=a&node=b`) would do: pods, gangs, budgets, where jobs start again. Nothing is done."""
        names = request.query_params.getlist("node")
        found = preview(request.user, names)
        starts = shown.as_json(request.user, drain_question(names), shown.PATIENT) if found.unplaced else None
        return Response(as_json(found) | {"starts": starts})

    @extend_schema(request=Wanted, responses={201: OpenApiTypes.OBJECT})
    def create(self, request: Request) -> Response:
        """Begin a drain; 409 for a node that is drained already, and for pods that have to be asked for."""
        if not isinstance(request.data, dict):
            raise BadRequest(said("the request is not understood"), [FieldError("", said("must be an object"), "type")])
        names, wish = asked.of_json(request.data)

        def work() -> Response:
            drain = acts.begin(request.user, names, wish)
            where = reverse("api:drain", args=[drain.pk])
            body = progress.as_json(progress.of(request.user, drain))
            return Response(body, status=status.HTTP_201_CREATED, headers={"Location": where})

        return once(request, work)

    @extend_schema(responses={200: OpenApiTypes.OBJECT})
    def retrieve(self, request: Request, pk: UUID) -> Response:
        """How far it is, node by node."""
        return Response(progress.as_json(progress.of(request.user, self._find(request, pk))))

    @extend_schema(request=OpenApiTypes.OBJECT, responses={202: OpenApiTypes.OBJECT})
    def cancel(self, request: Request, pk: UUID) -> Response:
        """End it; with `{"uncordon": true}` the nodes that it cordoned take pods again."""
        drain = self._find(request, pk)
        uncordon = request.data.get("uncordon", False) if isinstance(request.data, dict) else None
        if not isinstance(uncordon, bool):
            raise BadRequest(
                said("the request is not understood"), [FieldError("/uncordon", said("must be true or false"), "type")]
            )
        acts.cancel(request.user, drain, uncordon=uncordon)
        return Response(progress.as_json(progress.of(request.user, drain)), status=status.HTTP_202_ACCEPTED)

    def _find(self, request: Request, pk: UUID) -> Drain:
        drain = acts.seen(request.user).filter(pk=pk).first()
        if drain is None:
            raise Http404(said("There is no drain %(pk)s.", pk=pk))
        return drain


urlpatterns = [
    *route("drains", DrainViewSet, "drains", get="list", post="create"),
    *route("drains/preview", DrainViewSet, "drain-preview", get="look"),
    *route("drains/<uuid:pk>", DrainViewSet, "drain", get="retrieve"),
    *route("drains/<uuid:pk>/cancel", DrainViewSet, "drain-cancel", post="cancel"),
]
