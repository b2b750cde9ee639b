"""Durations and instants as Kubernetes's tools write and read them."""

from __future__ import annotations

import re
from datetime import datetime

from basalt.client.errors import Refused

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def human(seconds: float) -> str:
    """A duration in its two largest units that matter: `90s`, `5m3s`, `3h12m`, `9d`."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    return f"{days // 365}y{days % 365}d" if days < 365 * 8 else f"{days // 365}y"


def _two(large: int, unit: str, small: int, lesser: str) -> str:
    return f"{large}{unit}{small}{lesser}" if small else f"{large}{unit}"


def since(stamp: str | None, now: datetime) -> str:
    """How long ago an ISO instant was; `<unknown>` without one."""
    return human((now - datetime.fromisoformat(stamp)).total_seconds()) if stamp else "<unknown>"


def seconds(text: str) -> float:
    """A duration in Go's manner (`90s`, `5m`, `1h30m`), or a plain number of seconds. Raises Refused."""
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text, re.ASCII):
        return float(text)
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(ms|[smhd])", text, re.ASCII)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise Refused(f"{text!r} is no duration.", hint="Write it as 30s, 5m or 1h30m.")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def local(stamp: str, form: str = "%Y-%m-%d") -> str:
    """An ISO instant in this machine's time zone."""
    return datetime.fromisoformat(stamp).astimezone().strftime(form)
