"""When jobs are likely to start, in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from basalt.terminal.ages import human, local


def span(found: dict[str, Any] | None, now: datetime) -> str:
    """P50 to P90: `14:20 to 15:10, in half of the futures in 25m`; what has passed is at any moment."""
    if not found:
        return "not known"
    p50, p90 = found.get("p50"), found.get("p90")
    if found.get("due"):
        return f"at any moment, by {clock(p90, now)} in nine of ten futures" if p90 else "at any moment"
    if not p50:
        return "not in sight"
    soon = human((datetime.fromisoformat(p50) - now).total_seconds())
    first = f"{clock(p50, now)} (in {soon}) in half of the futures"
    return f"{first}, by {clock(p90, now)} in nine of ten" if p90 else f"{first}, or much later"


def clock(stamp: str, now: datetime) -> str:
    """An instant in this machine's zone, with its day when that is another than today."""
    return local(stamp, "%H:%M" if local(stamp) == local(now.isoformat()) else "%Y-%m-%d %H:%M")


def of_draft(start: dict[str, Any] | None, queue: str, now: datetime) -> Iterator[str]:
    """Rank and likely start of a job that is not submitted yet, and whom it would delay."""
    if not start or start.get("state") == "none":
        return
    if position := start.get("position"):
        mine, everybody = position["queue"], position["all"]
        yield f"Place {mine['rank']} of {mine['of']} in queue {queue}, {everybody['rank']} of {everybody['of']} in the cluster."
    if start["state"] != "done":
        yield (
            "When it is likely to start is not known now."
            if start["state"] == "unavailable"
            else ("When it is likely to start is still being worked out: ask again.")
        )
        return
    for each in start.get("jobs") or ():
        yield f"Likely start: {span(each['after'], now)}."
    yield from whom_it_delays(start)


def whom_it_delays(start: dict[str, Any] | None) -> Iterator[str]:
    """Jobs whose likely start would be later."""
    total = (start or {}).get("delayed_total")
    if start and total:
        yield f"Likely to start later for it: {total} job{'s' if total > 1 else ''}"
        for each in start.get("delayed") or ():
            later = "no longer in sight" if each["delay_seconds"] is None else f"{human(each['delay_seconds'])} later"
            yield f"  {each.get('job') or 'another job'}: {later}"
