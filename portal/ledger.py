"""REST: the eviction ledger, who had to give way to whom, by which rule, and what came free."""

from __future__ import annotations

from typing import Any, ClassVar

import django_filters as filters
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.kinds import POD
from cluster.rest.views import ObjectViewSet, route
from portal.evictions import Seen, known
from portal.models import Eviction

VICTIM = ("victim", "victim_uid", "victim_job", "victim_job_uid", "victim_queue")
PREEMPTOR = ("preemptor", "preemptor_uid", "preemptor_pod", "preemptor_queue")


class EvictionFilter(filters.FilterSet):  # type: ignore[misc]
    """`victim_job_uid` and `preemptor_uid` are uids of jobs. A side is found by its names only by who may see that side."""

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

    def filter_queryset(self, queryset: QuerySet[Eviction]) -> QuerySet[Eviction]:
        found: QuerySet[Eviction] = super().filter_queryset(queryset)
        for side, key, uid in ((VICTIM, "victim_job", "victim_job_uid"), (PREEMPTOR, "preemptor", "preemptor_uid")):
            if any(self.form.cleaned_data.get(name) for name in side):
                found = found.filter(known(self.request.user, key, uid))
        return found


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
        seen = Seen(request.user, page)
        return self.get_paginated_response([self._known(self.row(obj), obj, seen) for obj in page])

    def _known(self, row: dict[str, Any], obj: Eviction, seen: Seen) -> dict[str, Any]:
        """Without the names of a side that the user may not see: it is `other`."""
        taker = seen.taker(obj)
        for is_other, names in ((seen.victim(obj).other, VICTIM), (taker is not None and taker.other, PREEMPTOR)):
            if is_other:
                row |= dict.fromkeys(names, "") | {names[0]: "other", "reason": ""}
        return row


urlpatterns = route("evictions", EvictionViewSet, "evictions", get="list")
