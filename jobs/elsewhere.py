"""Jobs that another scheduler than ours places: why they wait, as that scheduler writes it onto their PodGroups.

Volcano's conditions pile up: `Unschedulable` stays true beside `Scheduled`. What moved last counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import gettext as _

from cluster.objects import parse_time
from cluster.port import Obj
from jobs.choices import GroupPhase
from jobs.schedulers import scheduler_names
from scheduler.framework.explain import Stage

if TYPE_CHECKING:
    from jobs.models import PodGroup

SAID = "scheduler.said"
LONGEST = 1000
"""Characters of a condition's message that are kept."""


def is_ours(job: Obj) -> bool:
    """Whether our scheduler places this job's pods."""
    name = (job.get("spec") or {}).get("schedulerName") or scheduler_names()[0]
    return bool(settings.BASALT_SCHEDULER) and name in scheduler_names()


def verdict(group: PodGroup | None) -> dict[str, Any] | None:
    """What the other scheduler says of a gang that waits, in the shape of our verdicts; None when it says nothing."""
    if group is None:
        return None
    told = [c for c in group.conditions if isinstance(c, dict) and c.get("status") == "True"]
    waits = max((_since(c) for c in told if c.get("type") == "Unschedulable"), default=None)
    starts = max((_since(c) for c in told if c.get("type") == "Scheduled"), default=None)
    has_started = group.phase in (GroupPhase.RUNNING, GroupPhase.COMPLETED)
    if waits is None or (starts is not None and (starts > waits or (starts == waits and has_started))):
        return None
    last = max((c for c in told if c.get("type") == "Unschedulable"), key=_since)
    stage = Stage.ADMISSION if group.phase == GroupPhase.PENDING else Stage.GANG
    said = " ".join(str(last.get("message") or last.get("reason") or "").split())
    return {"stage": str(stage), "code": SAID, "reason": str(last.get("reason") or ""), "said": said[:LONGEST]} if said else None


def _since(condition: Mapping[str, Any]) -> float:
    try:
        return parse_time(str(condition.get("lastTransitionTime")))
    except (ValueError, OverflowError):
        return 0.0


Form = Callable[[Mapping[str, Any]], str]
SHORT: dict[str, Form] = {SAID: lambda v: _("Scheduler: %(said)s")}
LONG: dict[str, Form] = {SAID: lambda v: _("The scheduler of this job says: %(said)s")}
ADVICE: dict[str, Form] = {
    SAID: lambda v: _("Another scheduler than Basalt's places this job. Wait for room, or ask for less; its log may say more.")
}
