"""One thing to know about a job that is well-formed: where it stands in the manifest, and how bad it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cluster.pointers import pointer


@dataclass(frozen=True, slots=True)
class Note:
    """`kind` is ok, warn (it waits) or bad (it can never start as things stand). `pointer` is empty for the job as a whole."""

    kind: str
    text: str
    pointer: str = ""

    def as_dict(self) -> dict[str, str]:
        """For programs."""
        return {"kind": self.kind, "pointer": self.pointer, "text": self.text}


def amount_of(index: int, pod: dict[str, Any], resource: str) -> str:
    """Where a task's pod says how much of a resource it asks: the amount itself, else the resources of its first container."""
    containers = pod.get("containers") or ()
    for number, container in enumerate(containers):
        for half in ("limits", "requests"):
            if resource in ((container.get("resources") or {}).get(half) or {}):
                return pointer("spec", "tasks", index, "template", "spec", "containers", number, "resources", half, resource)
    return pointer("spec", "tasks", index, "template", "spec")
