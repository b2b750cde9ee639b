"""REST: when a waiting job is likely to start."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.kinds import JOB
from cluster.rest.views import QuestionViewSet, route
from jobs.models import Job
from portal.simulations import estimates


class StartEstimateAnswer(serializers.Serializer[Any]):
    """An estimate from simulated futures of the cluster as it is."""

    uid = serializers.CharField()
    state = serializers.ChoiceField(
        ["done", "working", "none"], help_text="working: ask again; none: it does not wait, or is not among the first in line"
    )
    at = serializers.DateTimeField(allow_null=True, help_text="when it was worked out, by the cluster's clock")
    rank = serializers.IntegerField(allow_null=True, help_text="place in the line of all, from 1")
    of = serializers.IntegerField(allow_null=True)
    p50 = serializers.DateTimeField(
        allow_null=True, help_text="in half of the futures it starts by then; null: not in the horizon"
    )
    p90 = serializers.DateTimeField(allow_null=True, help_text="in nine of ten it starts by then; null: not in the horizon")
    due = serializers.BooleanField(help_text="P50 has passed, so that it is given as now: it may start at any moment")
    old = serializers.BooleanField(help_text="worked out long ago, or the cluster has changed much since; it is worked out anew")
    futures = serializers.IntegerField(help_text="how many were simulated")
    known = serializers.IntegerField(help_text="past jobs whose run times were taken")
    by = serializers.CharField(help_text="what those have in common with this one: name, owner, queue, size or all")
    horizon_seconds = serializers.IntegerField()


class StartEstimateViewSet(QuestionViewSet):
    """One question about one job."""

    kind = JOB
    queryset = Job.objects.all()
    serializer_class = StartEstimateAnswer
    rights: ClassVar = {"estimate": "jobs.view"}

    @extend_schema(responses=StartEstimateAnswer)
    def estimate(self, request: Request, **where: str) -> Response:
        """When it is likely to start: P50 and P90, from simulated futures. Asking has them worked out anew when they are old."""
        job: Job = self.find(**where)
        return Response({"uid": job.uid, **estimates.as_json(estimates.of(job))})


urlpatterns = [
    *route("jobs/<str:uid>/start-estimate", StartEstimateViewSet, "job-start-estimate-by-uid", get="estimate"),
    *route("jobs/<str:namespace>/<str:name>/start-estimate", StartEstimateViewSet, "job-start-estimate", get="estimate"),
]
