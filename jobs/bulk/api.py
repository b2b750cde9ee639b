"""REST of actions on many jobs: made as a draft with its preview, begun, followed, stopped, and the outcome of each job."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from cluster.errors import Conflict
from cluster.rest.idempotency import once
from cluster.rest.paging import KeysetPagination
from cluster.rest.parsers import JSONParser
from cluster.rest.views import route
from cluster.said import said
from jobs.bulk import impact, pages
from jobs.bulk.asking import NAMES, make, preview
from jobs.bulk.control import change, found, own
from jobs.bulk.models import BulkItem, BulkOperation, BulkState, Outcome

Body = dict[str, Any]
NEWEST = 50


class Wanted(serializers.Serializer[Any]):
    """What is asked: an action, and either `uids` or a `query` as in the address of the job list (empty: every job)."""

    action = serializers.ChoiceField(choices=NAMES)
    argument = serializers.CharField(
        max_length=253, required=False, allow_blank=True, help_text="of the action `priority`: the priority class"
    )
    uids = serializers.ListField(child=serializers.CharField(max_length=36), required=False, max_length=100_000)
    query = serializers.CharField(required=False, allow_blank=True, max_length=2000)
    start = serializers.BooleanField(default=False, help_text="begin at once, without looking at the preview first")

    def validate(self, attrs: Body) -> Body:
        if ("uids" in attrs) == ("query" in attrs):
            raise ValidationError(_("name the jobs by uids or by query, one of both"))
        return attrs


def operation_row(operation: BulkOperation) -> Body:
    """One operation and how far it is."""
    told = pages.progress(operation)
    counts = {outcome.value or "waiting": jobs for outcome, _mark, jobs in told["counts"]}
    times = {name: getattr(operation, name) for name in ("created_at", "started_at", "finished_at")}
    return {
        "id": str(operation.pk),
        "user": operation.user,
        "action": operation.action,
        "argument": operation.argument,
        "query": operation.query,
        "state": operation.state,
        "total": operation.total,
        "outcomes": counts,
        **{name: at.isoformat() if at else None for name, at in times.items()},
    }


class BulkViewSet(ViewSet):
    """Actions on many jobs."""

    permission_classes = (IsAuthenticated,)
    parser_classes = (JSONParser,)
    ordering = "id"
    ordering_fields = ("id",)

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def list(self, request: Request) -> Response:
        """The newest of one's own."""
        return Response({"results": [operation_row(each) for each in own(request.user)[:NEWEST]]})

    @extend_schema(request=Wanted, responses={201: OpenApiTypes.OBJECT})
    def create(self, request: Request) -> Response:
        """A draft with its preview, which does nothing yet; with `start` it is begun."""
        wanted = Wanted(data=request.data)
        wanted.is_valid(raise_exception=True)
        asked = wanted.validated_data

        def work() -> Response:
            argument = asked.get("argument", "")
            made = make(
                request.user, asked["action"], argument=argument, query=asked.get("query", ""), uids=asked.get("uids")
            )  # fmt: skip
            body = self._full(request.user, made)
            if asked["start"]:
                change(made, "start")
                body |= {"state": BulkState.RUNNING.value}
            where = reverse("api:bulk-operation", args=[made.pk])
            return Response(body, status=status.HTTP_201_CREATED, headers={"Location": where})

        return once(request, work)

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def retrieve(self, request: Request, pk: UUID) -> Response:
        """How far it is; of a draft, what it would do."""
        return Response(self._full(request.user, self._find(request, pk)))

    @extend_schema(request=None, responses={202: OpenApiTypes.OBJECT})
    def act(self, request: Request, pk: UUID, wish: str) -> Response:
        """`start` begins it, or goes on with one that was stopped; `stop` ends it after the jobs that are under way."""
        operation = self._find(request, pk)
        if wish not in ("start", "stop"):
            raise Http404(said("There is no %(wish)r: use start or stop.", wish=wish))
        if not change(operation, wish):
            raise Conflict(said("the operation is %(state)s: it cannot %(wish)s", state=operation.state, wish=wish))
        return Response(operation_row(self._find(request, pk)), status=status.HTTP_202_ACCEPTED)

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def items(self, request: Request, pk: UUID) -> Response:
        """Its jobs in their order with the outcome of each; `?outcome=` narrows them."""
        rows: QuerySet[BulkItem] = self._find(request, pk).items.select_related("job").defer("job__manifest", "job__verdict")
        if outcome := request.query_params.get("outcome"):
            rows = rows.filter(outcome="" if outcome == "waiting" else outcome)
        pager = KeysetPagination()
        return pager.get_paginated_response([self._item(each) for each in pager.paginate_queryset(rows, request, self)])

    def _item(self, item: BulkItem) -> Body:
        return {
            "uid": item.job_id,
            "namespace": item.job.namespace,
            "name": item.job.name,
            "phase": item.job.phase,
            "outcome": item.outcome or Outcome.WAITING.name.lower(),
            "reason": item.reason,
            "message": item.message,
        }

    def _find(self, request: Request, pk: UUID) -> BulkOperation:
        operation = found(request.user, pk)
        if operation is None:
            raise Http404(said("There is no operation %(pk)s.", pk=pk))
        return operation

    def _full(self, user: Any, operation: BulkOperation) -> Body:
        body = operation_row(operation)
        if operation.state == BulkState.DRAFT:
            told = preview(user, operation)
            refusals = [{"code": each.code, "phase": each.phase, "jobs": each.jobs} for each in told.refusals]
            body["preview"] = {"acts": told.acts, "same": told.same, "refused": told.refused, "refusals": refusals}
            if found := impact.of(user, operation):
                body["preview"]["impact"] = found.as_dict()
        return body


urlpatterns = [
    *route("bulk-operations", BulkViewSet, "bulk-operations", get="list", post="create"),
    *route("bulk-operations/<uuid:pk>", BulkViewSet, "bulk-operation", get="retrieve"),
    *route("bulk-operations/<uuid:pk>/items", BulkViewSet, "bulk-operation-items", get="items"),
    *route("bulk-operations/<uuid:pk>/<str:wish>", BulkViewSet, "bulk-operation-act", post="act"),
]
