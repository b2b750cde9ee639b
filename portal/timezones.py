"""Times are shown in the reader's own time zone, which their browser tells by the cookie `tz`."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone


def wanted(request: HttpRequest) -> zoneinfo.ZoneInfo | None:
    """The zone of the cookie; None when there is none or it names no zone."""
    name = request.COOKIES.get("tz", "")
    if not name or len(name) > 64:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


class TimeZoneMiddleware:
    """Activates the reader's zone for one request."""

    async_capable = True
    sync_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if self._is_async:
            return self._acall(request)  # type: ignore[return-value]
        with timezone.override(wanted(request)):
            return self.get_response(request)

    async def _acall(self, request: HttpRequest) -> HttpResponse:
        with timezone.override(wanted(request)):
            return await self.get_response(request)  # type: ignore[misc]
