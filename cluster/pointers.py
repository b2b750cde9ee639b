"""JSON pointers (RFC 6901): where in an object something is."""

from __future__ import annotations


def pointer(*steps: str | int) -> str:
    """The pointer that goes down by keys and indices; two pointers join by putting one behind the other."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def steps(pointer: str) -> list[str]:
    """The keys and indices of a pointer; none for the whole object."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
