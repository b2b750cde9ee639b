"""REST: the eviction ledger, who had to give way to whom, by which rule, and what came free."""

from __future__ import annotations

from typing import Any, ClassVar

import django_filters as filters
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.kinds import POD
from cluster.rest.views import ObjectViewSet, route
from portal.models import Eviction


class EvictionFilter(filters.FilterSet):  # type: ignore[misc]
    """`victim_job_uid` and `preemptor_uid` are uids of jobs."""

    class Meta:
        model = Eviction
        fields = (
            "action",
            "node",
            "victim_job",
            "victim_job_uid",
            "victim_queue",
            "preemptor",
            "preemptor_uid",
            "preemptor_queue",
        )


class EvictionRow(serializers.ModelSerializer[Eviction]):
    """An eviction in the list."""

    class Meta:
        model = Eviction
        fields = "__all__"


class EvictionViewSet(ObjectViewSet):
    """What the scheduler evicted, newest first."""

    kind = POD
    queryset = Eviction.objects.all()
    serializer_class = EvictionRow
    filterset_class = EvictionFilter
    ordering = "-at"
    ordering_fields = ("at",)
    rights: ClassVar = {"list": "jobs.view"}

    def row(self, obj: Eviction) -> dict[str, Any]:
        return dict(EvictionRow(obj).data)

    def list(self, request: Request) -> Response:
        page: Any = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response([self.row(obj) for obj in page])


urlpatterns = route("evictions", EvictionViewSet, "evictions", get="list")
