"""Times are shown in the reader's time zone: the one they chose, else their browser's (the cookie `tz`), else the server's."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable
from datetime import datetime

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone


def named(name: object) -> zoneinfo.ZoneInfo | None:
    """The zone of a name; None when it names none."""
    if not isinstance(name, str) or not name or len(name) > 64:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def wanted(request: HttpRequest, chosen: object) -> zoneinfo.ZoneInfo:
    """The zone that a person chose, else that of the cookie, else the default."""
    return named(chosen) or named(request.COOKIES.get("tz")) or zoneinfo.ZoneInfo(settings.BASALT_TIME_ZONE)


def offset_of(moment: datetime) -> str:
    """How far an instant's clock is from UTC: `UTC+8`, `UTC−3:30`, `UTC`."""
    offset = moment.utcoffset()
    minutes = round(offset.total_seconds() / 60) if offset is not None else 0
    if not minutes:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '−'}{hours}{f':{rest:02}' if rest else ''}"


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
        kept = request.session.get("preferences", {})
        with timezone.override(wanted(request, kept.get("time_zone"))):
            return self.get_response(request)

    async def _acall(self, request: HttpRequest) -> HttpResponse:
        kept = await request.session.aget("preferences", {})
        with timezone.override(wanted(request, kept.get("time_zone"))):
            return await self.get_response(request)  # type: ignore[misc]
