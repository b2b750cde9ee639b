"""Cursor pages over any ordering, by keyset: constant cost however deep, and rows that move are neither skipped nor doubled."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError as NotValid
from django.db.models import DateTimeField, Q, QuerySet
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from cluster.said import said

Row = Any


class KeysetPagination(BasePagination):
    """`?limit=` rows (at most 500) after `?cursor=`, in `?ordering=`; the view names what may be ordered by.

    The primary key breaks ties. A cursor holds the last row's place in this ordering and is good for this ordering only.
    """

    default_limit = 50
    max_limit = 500

    def paginate_queryset(self, queryset: Any, request: Any, view: Any = None) -> list[Row]:
        self.request = request
        self.field, self.descending = self._ordering(request, view)
        limit = self._limit(request)
        if text := request.query_params.get("cursor"):
            queryset = queryset.filter(self._after(queryset, text))
        sign = "-" if self.descending else ""
        rows = list(queryset.order_by(f"{sign}{self.field}", "pk")[: limit + 1])
        self.last = rows[limit - 1] if len(rows) > limit else None
        return rows[:limit]

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data, "next": self._next()})

    def _next(self) -> str | None:
        if self.last is None:
            return None
        value = getattr(self.last, self.field)
        place = [self._name(), value.isoformat() if isinstance(value, datetime) else value, self.last.pk]
        cursor = base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")
        url = remove_query_param(self.request.build_absolute_uri(), "cursor")
        return str(replace_query_param(url, "cursor", cursor))

    def _name(self) -> str:
        return f"{'-' if self.descending else ''}{self.field}"

    def _ordering(self, request: Any, view: Any) -> tuple[str, bool]:
        allowed: tuple[str, ...] = view.ordering_fields
        name = request.query_params.get("ordering", view.ordering)
        field = name.removeprefix("-")
        if field not in allowed:
            told = _("%(name)r is no ordering; use one of %(known)s, - before it reverses")
            raise ValidationError({"ordering": told % {"name": name, "known": ", ".join(allowed)}})
        return field, name.startswith("-")

    def _limit(self, request: Any) -> int:
        text = request.query_params.get("limit", str(self.default_limit))
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= self.max_limit):
            raise ValidationError({"limit": _("must be a whole number from 1 to %(most)s") % {"most": self.max_limit}})
        return int(text)

    def _after(self, queryset: QuerySet[Any], text: str) -> Q:
        """What lies beyond a cursor. It comes from outside: it is taken for one of ours only when it reads like one."""
        meta = queryset.model._meta
        try:
            name, told, pk = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            value, pk = _read(meta.get_field(self.field), told), _read(meta.pk, pk)
            good = name == self._name()
        except (ValueError, TypeError, OverflowError, RecursionError, NotValid):
            good = False
        if not good:
            raise ValidationError({"cursor": _("is not one that this list gave for this ordering; begin again without it")})
        beyond = "lt" if self.descending else "gt"
        return Q(**{f"{self.field}__{beyond}": value}) | Q(**{self.field: value, "pk__gt": pk})

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        def parameter(name: str, schema: dict[str, Any], text: str) -> dict[str, Any]:
            return {"name": name, "in": "query", "required": False, "description": text, "schema": schema}

        names = [f"{sign}{field}" for field in view.ordering_fields for sign in ("", "-")]
        return [
            parameter("cursor", {"type": "string"}, "Where the page begins, as `next` of the page before says."),
            parameter("limit", {"type": "integer", "minimum": 1, "maximum": self.max_limit, "default": 50}, "Rows a page."),
            parameter("ordering", {"type": "string", "enum": names, "default": view.ordering}, "`-` before it reverses."),
            parameter("include", {"type": "string", "enum": ["manifest"]}, "`manifest`: each row carries its object."),
        ]

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "required": ["results", "next"],
            "properties": {"results": schema, "next": {"type": ["string", "null"], "format": "uri"}},
        }


def _read(field: Any, told: Any) -> Any:
    """A column's value as a cursor holds it. Raises ValueError, TypeError, OverflowError, NotValid when it holds none."""
    if isinstance(field, DateTimeField):
        return datetime.fromisoformat(told).astimezone(UTC)
    value = field.to_python(told)
    if told is None or type(value) is not type(told) or "\x00" in str(value):
        raise ValueError(said("%(told)r is no %(name)s", told=told, name=field.name))
    str(value).encode()  # half a surrogate pair is no text
    field.run_validators(value)
    return value
