"""JSON pointers (RFC 6901): where in an object something is."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEPS = re.compile(r"\[([^]]*)\]|([^.\[]+)")


def pointer(*steps: str | int) -> str:
    """The pointer that goes down by keys and indices; two pointers join by putting one behind the other."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def steps(pointer: str) -> list[str]:
    """The keys and indices of a pointer; none for the whole object."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def field_path(pointer: str) -> str:
    """A pointer as API servers write it: `spec.tasks[0].name`, `metadata.labels[a.b/c]`."""
    path = "".join(f".{step}" if _PLAIN.fullmatch(step) else f"[{step}]" for step in steps(pointer))
    return path.removeprefix(".")


def from_field_path(path: str) -> str:
    """The pointer of a field as API servers write it."""
    return pointer(*(step[0] or step[1] for step in _STEPS.findall(path)))
