"""REST: flows and templates, whose bodies are Volcano's manifests."""

from __future__ import annotations

from typing import Any, ClassVar

import django_filters as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.kinds import JOB_FLOW, JOB_TEMPLATE
from jobs.flows.choices import FlowState
from jobs.flows.models import JobFlow, JobTemplate
from jobs.flows.projection import project_flows, project_templates
from jobs.flows.rows import flow_row, template_row
from jobs.owned_api import Body, Full, OwnedFilter, OwnedViewSet


class FlowFilter(OwnedFilter):
    """`phase` may be given several times; `name` is any part of it."""

    phase = filters.MultipleChoiceFilter(choices=FlowState.choices)

    class Meta:
        model = JobFlow
        fields = ("namespace", "owner", "phase", "name")


class FlowRow(serializers.ModelSerializer[JobFlow]):
    """A flow in a list."""

    mark = serializers.CharField(help_text="the state mark that the pages draw")

    class Meta:
        model = JobFlow
        exclude = ("deleted_at", "manifest")


class FlowFull(Full, FlowRow):
    """A flow by itself."""

    class Meta(FlowRow.Meta):
        exclude = ()


class FlowViewSet(OwnedViewSet):
    """Flows of jobs."""

    kind = JOB_FLOW
    url = "jobflow"
    project = project_flows
    queryset = JobFlow.objects.all()
    serializer_class = FlowRow
    filterset_class = FlowFilter
    ordering_fields: ClassVar = ("created_at", "name", "namespace", "owner", "phase")

    def row(self, obj: Any) -> Body:
        return flow_row(obj)

    @extend_schema(responses=FlowFull)
    def retrieve(self, request: Request, **where: str) -> Response:
        """One flow: its manifest with its status, its jobs and events."""
        return super().retrieve(request, **where)


class TemplateFilter(OwnedFilter):
    """`name` is any part of it."""

    queue = filters.CharFilter()

    class Meta:
        model = JobTemplate
        fields = ("namespace", "owner", "queue", "name")


class TemplateRow(serializers.ModelSerializer[JobTemplate]):
    """A template in a list."""

    class Meta:
        model = JobTemplate
        exclude = ("deleted_at", "manifest")


class TemplateViewSet(OwnedViewSet):
    """What flows make jobs from."""

    kind = JOB_TEMPLATE
    url = "jobtemplate"
    project = project_templates
    queryset = JobTemplate.objects.all()
    serializer_class = TemplateRow
    filterset_class = TemplateFilter
    ordering_fields: ClassVar = ("created_at", "name", "namespace", "owner", "queue")

    def row(self, obj: Any) -> Body:
        return template_row(obj)

    def full(self, obj: Any) -> Body:
        """Its jobs are the flows', so their names alone stand here."""
        return super().full(obj) | {"jobs": obj.jobs}


urlpatterns = [*FlowViewSet.routes(), *TemplateViewSet.routes()]
