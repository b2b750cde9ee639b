"""REST of blueprints: listed, made, given versions, put away, and jobs submitted from them.

A definition is sent as `application/yaml` (its comments are kept) or as JSON.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from cluster import documents, runtime
from cluster.access import policy
from cluster.disclosure import shown as disclosed
from cluster.errors import AlreadyExists, BadRequest, FieldError, Invalid
from cluster.rest.idempotency import once
from cluster.rest.parsers import only
from cluster.rest.views import is_dry_run, route
from cluster.said import said
from jobs import operations as job_operations
from jobs.blueprints import access, operations, shown
from jobs.blueprints.models import Blueprint, BlueprintVersion
from jobs.blueprints.operations import Wish, fill_out
from jobs.models import Job
from jobs.rows import job_row
from jobs.submit.preview import preview

Body = dict[str, Any]
MOST = 500
TRIES = 10
"""Names that are tried for a job which nobody named, while others submit as well."""


class Order(serializers.Serializer[Any]):
    """What is filled in. With `manifest` that job is submitted, held to the version; else the one that the values give."""

    parameters = serializers.DictField(required=False, help_text="values by the names of the schema; defaults for the rest")
    name = serializers.CharField(required=False, allow_blank=True, max_length=253, help_text="of the job; else the next free one")
    namespace = serializers.CharField(required=False, allow_blank=True, max_length=253)
    queue = serializers.CharField(required=False, allow_blank=True, max_length=253)
    version = serializers.IntegerField(required=False, min_value=1, help_text="the newest unless told")
    manifest = serializers.DictField(required=False, help_text="a Job that was filled out and then edited")


VERSION = OpenApiParameter("version", int, description="the version that was edited: when there is a newer one, it is a conflict")
NOTE = OpenApiParameter("note", str, description="what is new in this version")
DRY_RUN = OpenApiParameter("dryRun", str, enum=["All"], description="Do everything but keep it.")


class BlueprintViewSet(ViewSet):
    """Jobs to fill out."""

    permission_classes = (IsAuthenticated,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Whoever may submit nothing has no use for them."""
        super().initial(request, *args, **kwargs)
        if not policy().may(request.user, "jobs.submit"):
            raise PermissionDenied(said("You may not submit jobs."))

    @extend_schema(responses=OpenApiTypes.OBJECT, parameters=[OpenApiParameter("archived", bool)])
    def list(self, request: Request) -> Response:
        """Those that one may see, by title; `?archived=true` those that were put away."""
        archived = request.query_params.get("archived") in ("1", "true")
        rows = shown.with_use(access.visible(request.user).filter(is_archived=archived))
        return Response({"results": [shown.row_of(row) for row in rows[:MOST]]})

    @extend_schema(request=OpenApiTypes.OBJECT, responses={201: OpenApiTypes.OBJECT}, parameters=[NOTE])
    def create(self, request: Request) -> Response:
        """Make one from its definition."""
        source, note = _source(request), request.query_params.get("note", "")

        def work() -> Response:
            row = operations.create(request.user, source, note)
            where = reverse("api:blueprint", args=[row.name])
            return Response(self._full(row), status=status.HTTP_201_CREATED, headers={"Location": where})

        return once(request, work)

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def retrieve(self, request: Request, name: str) -> Response:
        """One: what its newest version says, and how often it was used."""
        return Response(self._full(access.find(request.user, name)))

    @extend_schema(request=OpenApiTypes.OBJECT, responses=OpenApiTypes.OBJECT, parameters=[VERSION, NOTE])
    def update(self, request: Request, name: str) -> Response:
        """Add a version: a definition of the same name, and `?version=` that it was edited from."""
        row = access.find(request.user, name)
        if not access.may_change(request.user, row):
            raise PermissionDenied(said("Only its owner and administrators may change this blueprint."))
        base = request.query_params.get("version", "")
        if not base.isdecimal() or len(base) > 9:
            raise BadRequest(
                said("say by ?version= which one you edited"), [FieldError("?version", said("is required"), "required")]
            )
        row = operations.change(
            request.user, row, _source(request), base=int(base), note=request.query_params.get("note", "")
        )  # fmt: skip
        return Response(self._full(row))

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def versions(self, request: Request, name: str) -> Response:
        """Its versions, the newest first."""
        rows = shown.versions(access.find(request.user, name)).defer("source")
        return Response({"results": [shown.version_row(each) for each in rows[:MOST]]})

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def version(self, request: Request, name: str, number: int) -> Response:
        """One version, which never changes: schema, locked fields, job, and its text as it was written."""
        return Response(shown.version_full(operations.version(access.find(request.user, name), number)))

    @extend_schema(request=None, responses=OpenApiTypes.OBJECT)
    def act(self, request: Request, name: str, action: str) -> Response:
        """`archive` puts it away, `restore` brings it back."""
        row = access.find(request.user, name)
        if action not in ("archive", "restore"):
            raise BadRequest(said("there is no %(action)r: use archive or restore", action=action))
        operations.archive(request.user, row, is_archived=action == "archive")
        return Response(self._full(access.find(request.user, name)))

    @extend_schema(request=Order, responses={201: OpenApiTypes.OBJECT}, parameters=[DRY_RUN])
    def submit(self, request: Request, name: str) -> Response:
        """Submit a job from it. Locked fields, values and where it may go are checked here, whoever made the manifest."""
        row = access.find(request.user, name)
        order = Order(data=only(request.data).obj)
        order.is_valid(raise_exception=True)
        asked = order.validated_data
        made = operations.version(row, asked.get("version"))
        manifest = asked.get("manifest")
        if manifest is None:
            manifest = _filled(request.user, made, asked)
        if is_dry_run(request):
            operations.claim(request.user, manifest)
            obj = job_operations.submit(
                runtime.current(), manifest, owner=request.user.get_username(), dry_run=True
            )  # fmt: skip
            findings = preview(request.user, obj).as_list()
            return Response({"dryRun": True, "manifest": disclosed(obj), "findings": findings})

        def work() -> Response:
            nonlocal manifest
            for left in reversed(range(TRIES)):
                try:
                    return self._submit(request.user, made, manifest)
                except AlreadyExists:
                    if not left or asked.get("manifest") is not None or asked.get("name"):
                        raise
                    manifest = _filled(request.user, made, asked)  # somebody took the name that was free
            raise AssertionError

        return once(request, work)

    def _submit(self, user: Any, made: BlueprintVersion, manifest: Body) -> Response:
        obj = operations.submit(user, made, manifest)
        job = Job.objects.get(pk=obj["metadata"]["uid"])
        body = job_row(job) | {"blueprint": {"name": made.blueprint.name, "version": made.number}}
        where = reverse("api:job", args=[job.namespace, job.name])
        return Response(body, status=status.HTTP_201_CREATED, headers={"Location": where})

    def _full(self, row: Blueprint) -> Body:
        counted = shown.with_use(Blueprint.objects.filter(pk=row.pk)).get()
        return shown.row_of(counted) | shown.version_full(operations.current(row))


def _filled(user: Any, made: BlueprintVersion, asked: Body) -> Body:
    wish = Wish(asked.get("parameters", {}), *(asked.get(key, "") for key in ("name", "namespace", "queue")))
    filled = fill_out(user, made, wish)
    if filled.faults:
        raise Invalid.of("Job", wish.name, filled.faults)
    return filled.manifest


def _source(request: Request) -> str:
    """A definition as text: the body itself where it is YAML, so that comments stay."""
    body: Any = request.data
    document = only(body)
    return str(body.text) if "yaml" in (request.content_type or "") else documents.dump(document.obj)


urlpatterns = [
    *route("blueprints", BlueprintViewSet, "blueprints", get="list", post="create"),
    *route("blueprints/<str:name>", BlueprintViewSet, "blueprint", get="retrieve", put="update"),
    *route("blueprints/<str:name>/versions", BlueprintViewSet, "blueprint-versions", get="versions"),
    *route("blueprints/<str:name>/versions/<int:number>", BlueprintViewSet, "blueprint-version", get="version"),
    *route("blueprints/<str:name>/submit", BlueprintViewSet, "blueprint-submit", post="submit"),
    *route("blueprints/<str:name>/actions/<str:action>", BlueprintViewSet, "blueprint-action", post="act"),
]
