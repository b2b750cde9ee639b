"""Jobs that wait before they have a gang to schedule: as their controller notes it in the status, as a verdict, and in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from cluster.kinds import CONFIG_MAP, SECRET
from cluster.port import Obj
from jobs.elsewhere import SAID
from scheduler.framework.explain import Stage

HELD = "basalt.dev/held"
"""In a job's `status.controlledResources`: what keeps it from being prepared, `<plugin>[/<kind>/<name>]`."""

VOLUMES = "volumes"
"""In the place of a plugin: a claim that the job's volumes name."""

QUOTA = "quota"
"""In the place of a plugin: the ResourceQuota of the namespace that refuses the job's pods."""

TAKEN, FAILED, CLAIM_MISSING, QUOTA_USED = "plugin.taken", "plugin.failed", "claim.missing", "quota.used"
CODES = (TAKEN, FAILED, CLAIM_MISSING, QUOTA_USED, SAID)
"""An object of the plugin's name is somebody else's; the plugin failed otherwise; there is no claim of that name; the quota of
its namespace is used up. And what another scheduler says of its jobs."""
_BY_PLACE = {VOLUMES: CLAIM_MISSING, QUOTA: QUOTA_USED}


def note_of(plugin: str, kind: str = "", name: str = "") -> str:
    """The note."""
    return "/".join([plugin, kind, name] if kind else [plugin])


def verdict(job: Obj | None) -> dict[str, Any] | None:
    """Why the controller holds a job, in the shape of the scheduler's verdicts; None when it does not."""
    status = (job or {}).get("status") or {}
    note = (status.get("controlledResources") or {}).get(HELD)
    if not note or (status.get("state") or {}).get("phase", "Pending") != "Pending":
        return None
    plugin, kind, name = [*note.split("/"), "", ""][:3]
    code = _BY_PLACE.get(plugin) or (TAKEN if kind else FAILED)
    return {"stage": str(Stage.DEPENDENCY), "code": code, "plugin": plugin, "kind": kind, "object": name}


def is_held(verdict: Mapping[str, Any] | None) -> bool:
    """Whether a verdict is the controller's, or another scheduler's: ours knows nothing of it."""
    return verdict is not None and verdict.get("code") in CODES


def _so(verdict: Mapping[str, Any]) -> str:
    """What the job lacks for it."""
    if verdict.get("kind") == CONFIG_MAP.kind:
        return _("Its list of hosts cannot be written: %(kind)s %(object)s belongs to somebody else.")
    if verdict.get("kind") == SECRET.kind:
        return _("Its keys cannot be kept: %(kind)s %(object)s belongs to somebody else.")
    return _("Plugin %(plugin)s needs %(kind)s %(object)s, which belongs to somebody else.")


Form = Callable[[Mapping[str, Any]], str]
SHORT: dict[str, Form] = {
    TAKEN: lambda v: _("%(kind)s %(object)s belongs to somebody else"),
    FAILED: lambda v: _("Plugin %(plugin)s cannot prepare the job"),
    CLAIM_MISSING: lambda v: _("Volume claim %(object)s does not exist"),
    QUOTA_USED: lambda v: _("ResourceQuota %(object)s of the namespace is used up"),
}
LONG: dict[str, Form] = {
    TAKEN: _so,
    FAILED: lambda v: _("Plugin %(plugin)s cannot prepare the job; it is tried again, and its events say why."),
    QUOTA_USED: lambda v: _(
        "ResourceQuota %(object)s of the namespace refuses the job's pods; they are tried again, ever later."
    ),
}
ADVICE: dict[str, Form] = {
    TAKEN: lambda v: _("Submit the job under another name, or remove %(kind)s %(object)s: it is left alone, and the job waits."),
    FAILED: lambda v: _("Look at the job's events: the last PluginError says what went wrong."),
    CLAIM_MISSING: lambda v: _("Make the claim, or submit the job with another."),
    QUOTA_USED: lambda v: _("Wait for other pods of the namespace to end, ask for less, or have the quota raised."),
}
