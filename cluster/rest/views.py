"""The REST frame that every kind's API view shares: rights, lists by cursor, filters that are known, one object by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import DictField, JSONField, Serializer
from rest_framework.viewsets import GenericViewSet

from cluster import objects, runtime
from cluster.access import policy
from cluster.disclosure import shown
from cluster.errors import BadRequest, FieldError, NotFound
from cluster.kinds import Kind
from cluster.port import Obj
from cluster.rest.paging import KeysetPagination
from cluster.said import said

PAGING = frozenset({"cursor", "limit", "ordering", "include"})


class Allowed(BasePermission):
    """Asks the policy for the right that the view names for what it is asked to do."""

    def has_permission(self, request: Any, view: Any) -> bool:
        right = view.right()
        return right is None or policy().may(request.user, right)


class KnownFilters(DjangoFilterBackend):  # type: ignore[misc]
    """A filter that does not exist is refused: a list that ignored a misspelt one would show too much."""

    def filter_queryset(self, request: Any, queryset: Any, view: Any) -> Any:
        known = set(view.filterset_class.base_filters) | PAGING
        unknown = sorted(set(request.query_params) - known)
        if unknown:
            told = _("is no filter of this list; there are %(known)s") % {"known": ", ".join(sorted(known))}
            raise ValidationError(dict.fromkeys(unknown, told))
        return super().filter_queryset(request, queryset, view)


class Manifest(Serializer[Any]):
    """A Kubernetes object, for the OpenAPI document: what it may hold is Volcano's and Kubernetes's own schema."""

    apiVersion = JSONField()
    kind = JSONField()
    metadata = DictField()
    spec = DictField(required=False)


class QuestionViewSet(GenericViewSet[Any]):
    """Questions about objects of one kind. Subclasses name the kind, its rows in the database and the rights by action."""

    kind: ClassVar[Kind]
    permission_classes = (IsAuthenticated, Allowed)
    pagination_class = KeysetPagination
    filter_backends = (KnownFilters,)
    rights: ClassVar[dict[str, str]] = {}
    """Rights by action, asked before anything is read; an action that is absent asks of the object itself."""

    def right(self) -> str | None:
        """The right that the action takes."""
        return self.rights.get(self.action or "")

    def manifest(self, obj: Any) -> Obj | None:
        """The object itself, None when the cluster has it no more."""
        try:
            found = runtime.current().get(self.kind, obj.name, getattr(obj, "namespace", ""))
        except NotFound:
            return None
        return shown(found) if objects.uid(found) == obj.uid else None

    def get_queryset(self) -> QuerySet[Any]:
        return policy().visible(self.request.user, super().get_queryset())

    def find(self, **where: str) -> Any:
        """The one of this uid, or the newest of this name, those that still exist first. Raises Http404."""
        rows = self.get_queryset().filter(**where) if "\x00" not in "".join(where.values()) else self.get_queryset().none()
        found = rows.filter(deleted_at=None).first() or rows.order_by("-created_at").first()
        if found is None:
            raise Http404(said("There is no %(kind)s %(name)s.", kind=self.kind.kind, name="/".join(where.values())))
        return found

    def allow(self, right: str, obj: Any = None) -> None:
        """Raises PermissionDenied when the policy says no."""
        if not policy().may(self.request.user, right, obj):
            raise PermissionDenied(
                said("You may not do this to %(object)s.", object=obj) if obj else said("You may not do this.")
            )


class ObjectViewSet(QuestionViewSet, ABC):
    """Lists and single objects too. Subclasses also say what a row is, and what may be ordered and filtered by."""

    columns: ClassVar[tuple[str, ...]] = ()
    """Columns that a list's rows need; empty: all."""
    ordering = "-created_at"
    ordering_fields: ClassVar[tuple[str, ...]] = ("created_at", "name")

    @abstractmethod
    def row(self, obj: Any) -> dict[str, Any]:
        """What a list shows of one."""

    def full(self, obj: Any) -> dict[str, Any]:
        """What is shown of one alone."""
        return self.row(obj) | {"manifest": self.manifest(obj)}

    def rows(self, page: Sequence[Any]) -> list[dict[str, Any]]:
        """The rows of one page; who has figures that are counted for many at once does that here."""
        return [self.row(obj) for obj in page]

    def list(self, request: Request) -> Response:
        found = self.filter_queryset(self.get_queryset().filter(deleted_at=None))
        whole = includes_manifest(request)
        page: Any = self.paginate_queryset(found.only(*self.columns) if self.columns and not whole else found)
        rows = self.rows(page)
        if whole:
            rows = [row | {"manifest": self.manifest(obj)} for row, obj in zip(rows, page)]
        return self.get_paginated_response(rows)

    def retrieve(self, request: Request, **where: str) -> Response:
        return Response(self.full(self.find(**where)))


NAMESPACE = OpenApiParameter("namespace", str, description="of what names none; `default` unless it is given")


def with_namespace(request: Request, obj: Obj) -> Obj:
    """A manifest that names no namespace, in the one of `?namespace=`."""
    namespace, meta = request.query_params.get("namespace"), obj.get("metadata")
    if not namespace or not isinstance(meta, dict) or meta.get("namespace"):
        return obj
    return {**obj, "metadata": {**meta, "namespace": namespace}}


def includes_manifest(request: Request) -> bool:
    """Whether a list's rows carry their objects (`?include=manifest`). Raises BadRequest for anything else under that name."""
    value = request.query_params.get("include", "")
    if value not in ("", "manifest"):
        raise BadRequest(
            said("include is manifest or absent, not %(value)r", value=value),
            [FieldError("?include", said("must be manifest"), "invalid")],
        )
    return value == "manifest"


def is_dry_run(request: Request) -> bool:
    """Whether `?dryRun=All` was asked for. Raises BadRequest for anything else under that name."""
    value = request.query_params.get("dryRun", "")
    if value not in ("", "All"):
        raise BadRequest(
            said("dryRun is All or absent, not %(value)r", value=value), [FieldError("?dryRun", said("must be All"), "invalid")]
        )
    return value == "All"


def route(address: str, view: type[Any], name: str, **methods: str) -> list[URLPattern]:
    """An address with and without a slash at its end; methods by verb: `get="list"`."""
    made: Any = view.as_view(methods) if methods else view.as_view()
    return [path(address, made, name=name), path(f"{address}/", made)]
