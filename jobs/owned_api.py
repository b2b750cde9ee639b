"""REST of the objects that make jobs: what flows, templates and cron jobs have in common."""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar

import django_filters as filters
from django.http import Http404
from django.urls import URLPattern, reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from cluster import runtime
from cluster.disclosure import shown
from cluster.rest.idempotency import once
from cluster.rest.parsers import only
from cluster.rest.problems import about
from cluster.rest.views import NAMESPACE, Manifest, ObjectViewSet, is_dry_run, route, with_namespace
from cluster.rows import event_row
from cluster.said import said
from jobs import operations, owned
from jobs.models import Job
from jobs.pages.queries import EVENT_LIMIT, events_of
from jobs.rows import job_row

Body = dict[str, Any]
JOBS_SHOWN = 200

DRY_RUN = OpenApiParameter("dryRun", str, enum=["All"], description="Do everything but keep it.")
KEY = OpenApiParameter("Idempotency-Key", str, OpenApiParameter.HEADER, description="Sent again, the first answer comes back.")


class OwnedFilter(filters.FilterSet):
    """`name` is any part of it."""

    namespace = filters.CharFilter()
    owner = filters.CharFilter()
    name = filters.CharFilter(lookup_expr="icontains")


class Full(serializers.Serializer[Any]):
    """What one by itself has beyond a row in a list."""

    manifest = serializers.DictField(help_text="the object as Kubernetes writes it, its status included")
    deleted_at = serializers.DateTimeField(allow_null=True)
    jobs = serializers.ListField(child=serializers.DictField(), help_text="the jobs that it made, newest first")
    events = serializers.ListField(child=serializers.DictField())


class OwnedViewSet(ObjectViewSet, ABC):
    """Subclasses name the kind, its rows, the URL of one, and how it is projected."""

    url: ClassVar[str]
    project: ClassVar[Any]
    rights: ClassVar = {"list": "jobs.view", "retrieve": "jobs.view", "create": "jobs.submit"}

    def manifest(self, obj: Any) -> Body:
        """As projected: what the cluster has forgotten keeps its manifest."""
        found: Body = obj.manifest
        return found

    def full(self, obj: Any) -> Body:
        """The row, the manifest, the newest of its jobs, and its events."""
        jobs = Job.objects.filter(made_by=obj.uid).order_by("-created_at")[:JOBS_SHOWN]
        return super().full(obj) | {
            "deleted_at": obj.deleted_at.isoformat() if obj.deleted_at else None,
            "jobs": [job_row(job) for job in jobs],
            "events": [event_row(event) for event in events_of(obj.uid)[:EVENT_LIMIT]],
        }

    @extend_schema(request=Manifest, responses={201: OpenApiTypes.OBJECT}, parameters=[DRY_RUN, KEY, NAMESPACE])
    def create(self, request: Request) -> Response:
        """Create one from its manifest; its owner, and the owner of its jobs, is who asks."""
        document, owner = only(request.data), request.user.get_username()
        manifest = with_namespace(request, document.obj)
        with about(document):
            if is_dry_run(request):
                obj = operations.submit_kind(runtime.current(), self.kind, manifest, owner=owner, dry_run=True)
                return Response({"dryRun": True, "manifest": shown(obj)})
            return once(request, lambda: self._create(manifest, owner))

    def _create(self, manifest: Body, owner: str) -> Response:
        obj = owned.create(self.kind, manifest, owner, type(self).project)
        row = self.queryset.model._default_manager.get(pk=obj["metadata"]["uid"])
        where = reverse(f"api:{self.url}", args=[row.namespace, row.name])
        return Response(self.full(row), status=status.HTTP_201_CREATED, headers={"Location": where})

    @extend_schema(request=Manifest, responses={200: OpenApiTypes.OBJECT}, parameters=[DRY_RUN])
    def partial_update(self, request: Request, **where: str) -> Response:
        """Change the spec, labels or annotations by a merge patch; `metadata.resourceVersion` guards against others' changes."""
        row, document, dry_run = self._mine(**where), only(request.data), is_dry_run(request)
        with about(document):
            obj = owned.change(self.kind, row.namespace, row.name, row.uid, document.obj, type(self).project, dry_run=dry_run)
        if dry_run:
            return Response({"dryRun": True, "manifest": shown(obj)})
        return Response(self.full(self.find(uid=row.uid)))

    @extend_schema(responses={202: OpenApiTypes.OBJECT})
    def destroy(self, request: Request, **where: str) -> Response:
        """Delete one with the jobs that it made."""
        row = self._mine(**where)
        owned.delete(self.kind, row.namespace, row.name, row.uid, type(self).project)
        return Response(self.row(self.find(uid=row.uid)), status=status.HTTP_202_ACCEPTED)

    @classmethod
    def routes(cls) -> list[URLPattern]:
        """The list, one by its uid, and one by namespace and name."""
        verbs = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}
        return [
            *route(f"{cls.url}s", cls, f"{cls.url}s", get="list", post="create"),
            *route(f"{cls.url}s/<str:uid>", cls, f"{cls.url}-by-uid", **verbs),
            *route(f"{cls.url}s/<str:namespace>/<str:name>", cls, cls.url, **verbs),
        ]

    def _mine(self, **where: str) -> Any:
        row = self.find(**where)
        self.allow("jobs.act", row)
        if row.deleted_at is not None:
            raise Http404(said("%(kind)s %(name)s is gone; only its history is left.", kind=self.kind.kind, name=row))
        return row
