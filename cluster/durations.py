"""Go's duration texts (`1h30m`, `250ms`), which Kubernetes and Volcano use in annotations and manifests."""

from __future__ import annotations

import re

from cluster.said import said

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(rf"([+-]?)((?:{_PART.pattern})+|0)")
_LONGEST = 2**63 / 1e9


def parse_duration(text: str) -> float:
    """Seconds. Raises ValueError, which says what would be right, for what Go's time.ParseDuration would not take."""
    match = _WHOLE.fullmatch(text) if len(text) <= 100 else None
    if match is None:
        raise ValueError(
            said("%(value)r is not a duration: write a number with a unit, such as '30s', '1h30m' or '250ms'", value=text[:100])
        )
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(match[2]))
    if seconds > _LONGEST:
        raise ValueError(said("%(text)r is too long a duration: the longest is about 292 years", text=text))
    return -seconds if match[1] == "-" else seconds


def format_duration(seconds: float) -> str:
    """A duration as Go prints it, to the millisecond: `1h2m3s`, `1.5s`, `250ms`, `0s`."""
    if seconds < 0:
        return f"-{format_duration(-seconds)}"
    milli = round(seconds * 1000)
    if milli < 1000:
        return f"{milli}ms" if milli else "0s"
    hours, rest = divmod(milli, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    last = f"{rest / 1000:g}s"
    if hours:
        return f"{hours}h{minutes}m{last}"
    return f"{minutes}m{last}" if minutes else last
