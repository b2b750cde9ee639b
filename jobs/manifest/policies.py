"""Lists of lifecycle policies: which entries are refused."""

from __future__ import annotations

from typing import Any

from cluster.said import said
from cluster.validation import Faults
from jobs.policies import PUBLIC_ACTIONS, PUBLIC_EVENTS, Event, events_of

_EVENTS = ", ".join(PUBLIC_EVENTS)
_ACTIONS = ", ".join(PUBLIC_ACTIONS)


def check_policies(policies: list[dict[str, Any]], where: str, faults: Faults) -> None:
    """One list, of the job or of a role."""
    first: dict[Any, int] = {}
    for index, policy in enumerate(policies):
        place = f"{where}/{index}"
        events, code = list(dict.fromkeys(events_of(policy))), policy.get("exitCode")
        if policy.get("action") not in PUBLIC_ACTIONS:
            faults.add(
                f"{place}/action",
                said("%(action)r is no action: write one of %(actions)s", action=policy.get("action", ""), actions=_ACTIONS),
                "choice",
            )
        if events and code is not None:
            faults.add(f"{place}/exitCode", said("stands beside an event: an entry has events or an exitCode"), "conflict")
        elif not events and code is None:
            faults.add(f"{place}/event", said("is required, or an exitCode: write one of %(events)s", events=_EVENTS), "required")
        if code == 0:
            faults.add(f"{place}/exitCode", said("must not be 0: that is success"), "range")
        for event in events:
            field = "event" if event == policy.get("event") else "events"
            if event not in PUBLIC_EVENTS:
                faults.add(
                    f"{place}/{field}",
                    said("%(event)r is no event: write one of %(events)s", event=event, events=_EVENTS),
                    "choice",
                )
            elif event in first:
                faults.add(
                    f"{place}/{field}",
                    said("%(event)s is already handled by entry %(entry)s: keep one", event=event, entry=first[event]),
                    "duplicate",
                )
            first.setdefault(event, index)
        if code is not None and code in first:
            faults.add(
                f"{place}/exitCode",
                said("%(code)s is already handled by entry %(entry)s: keep one", code=code, entry=first[code]),
                "duplicate",
            )
        elif code is not None:
            first[code] = index
    _check_any(first, where, faults)


def _check_any(first: dict[Any, int], where: str, faults: Faults) -> None:
    """`*` must be the only event of its list; exit codes may stand beside it."""
    others = [event for event in first if isinstance(event, str) and event != Event.ANY]
    if Event.ANY in first and others:
        faults.add(
            f"{where}/{first[Event.ANY]}/event",
            said("'*' already means %(names)s: keep it alone", names=", ".join(others)),
            "conflict",
        )
