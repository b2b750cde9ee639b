"""Jobs that wait before they have a gang to schedule: as the controller notes it in the status, and as a verdict."""

from __future__ import annotations

from typing import Any

from cluster.port import Obj
from scheduler.framework.explain import Stage

HELD = "basalt.dev/held"
"""In a job's `status.controlledResources`: what keeps it from being prepared, `<plugin>[/<kind>/<name>]`."""

TAKEN, FAILED = "plugin.taken", "plugin.failed"
"""Codes: an object of the plugin's name is somebody else's; the plugin failed otherwise."""


def said(plugin: str, kind: str = "", name: str = "") -> str:
    """The note."""
    return "/".join([plugin, kind, name] if kind else [plugin])


def verdict(job: Obj | None) -> dict[str, Any] | None:
    """Why the controller holds a job, in the shape of the scheduler's verdicts; None when it does not."""
    status = (job or {}).get("status") or {}
    note = (status.get("controlledResources") or {}).get(HELD)
    if not note or (status.get("state") or {}).get("phase", "Pending") != "Pending":
        return None
    plugin, kind, name = [*note.split("/"), "", ""][:3]
    return {
        "stage": str(Stage.DEPENDENCY),
        "code": TAKEN if kind else FAILED,
        "plugin": plugin,
        "object_kind": kind,
        "object": name,
    }
