"""REST: cron jobs, whose bodies are Volcano's manifests."""

from __future__ import annotations

from typing import Any, ClassVar

import django_filters as filters
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from cluster import runtime
from cluster.kinds import CRON_JOB
from cluster.rest.views import route
from jobs.cron import writes
from jobs.cron.models import CronJob
from jobs.cron.projection import project_crons
from jobs.cron.rows import cron_row, upcoming
from jobs.cron.runs import stamp_in_zone
from jobs.models import Job
from jobs.owned_api import Body, Full, OwnedFilter, OwnedViewSet
from jobs.rows import job_row


class CronFilter(OwnedFilter):
    """`name` is any part of it."""

    suspended = filters.BooleanFilter()

    class Meta:
        model = CronJob
        fields = ("namespace", "owner", "suspended", "name")


class CronRow(serializers.ModelSerializer[CronJob]):
    """A cron job in a list."""

    next_at = serializers.DateTimeField(allow_null=True, help_text="when it runs next, in its own time zone")

    class Meta:
        model = CronJob
        exclude = ("deleted_at", "manifest")


class CronFull(Full, CronRow):
    """A cron job by itself."""

    upcoming = serializers.ListField(child=serializers.DateTimeField(), help_text="the next times, in its own time zone")

    class Meta(CronRow.Meta):
        exclude = ()


class CronViewSet(OwnedViewSet):
    """Jobs by schedule."""

    kind = CRON_JOB
    url = "cronjob"
    project = project_crons
    queryset = CronJob.objects.all()
    serializer_class = CronRow
    filterset_class = CronFilter
    ordering_fields: ClassVar = ("created_at", "name", "namespace", "owner", "last_schedule_at")

    def row(self, obj: Any) -> Body:
        return cron_row(obj, runtime.now())

    def full(self, obj: Any) -> Body:
        """Also the next times."""
        times = [stamp_in_zone(instant, obj.time_zone or None) for instant in upcoming(obj, runtime.now())]
        return super().full(obj) | {"upcoming": times}

    @extend_schema(responses=CronFull)
    def retrieve(self, request: Request, **where: str) -> Response:
        """One cron job: its manifest with its status, the next times, its jobs and events."""
        return super().retrieve(request, **where)

    @extend_schema(request=None, responses={202: OpenApiTypes.OBJECT})
    def act(self, request: Request, action: str, **where: str) -> Response:
        """Suspend, resume, or trigger a run at once; the answer to `trigger` is the job."""
        cron = self._mine(**where)
        obj = writes.act(cron, action, request.user.get_username())
        if action == "trigger":
            job = Job.objects.get(pk=obj["metadata"]["uid"])
            where_to = reverse("api:job", args=[job.namespace, job.name])
            return Response(job_row(job), status=status.HTTP_202_ACCEPTED, headers={"Location": where_to})
        return Response(self.full(self.find(uid=cron.uid)), status=status.HTTP_202_ACCEPTED)


urlpatterns = [
    *CronViewSet.routes(),
    *route("cronjobs/<str:namespace>/<str:name>/actions/<str:action>", CronViewSet, "cronjob-action", post="act"),
]
