"""The older way to write a tree of queues: a path and its weights in annotations (hierarchical DRF)."""

from __future__ import annotations

from collections.abc import Iterable

from cluster.pointers import pointer
from cluster.port import Obj
from cluster.said import said
from cluster.validation import Faults
from queues.tree import ROOT

PATH = "volcano.sh/hierarchy"
WEIGHTS = "volcano.sh/hierarchy-weights"


def default_hierarchy(queue: Obj) -> None:
    """Put `root/` and `1/` before a path and weights that lack them."""
    annotations = (queue.get("metadata") or {}).get("annotations")
    if not isinstance(annotations, dict):
        return
    path, weights = annotations.get(PATH), annotations.get(WEIGHTS)
    if path and weights and isinstance(path, str) and path.split("/", 1)[0] != ROOT:
        annotations[PATH], annotations[WEIGHTS] = f"{ROOT}/{path}", f"1/{weights}"


def check_hierarchy(queue: Obj, queues: Iterable[Obj], faults: Faults) -> None:
    """As many weights as steps, each above 0, and no path that leads through another queue."""
    annotations = queue["metadata"].get("annotations") or {}
    path, weights = annotations.get(PATH) or "", annotations.get(WEIGHTS) or ""
    if not path and not weights:
        return
    steps, numbers = path.split("/"), weights.split("/")
    if len(steps) != len(numbers):
        where = pointer("metadata", "annotations", WEIGHTS)
        faults.add(
            where,
            said(
                "has %(weights)s weights for the %(steps)s steps of %(path)r: give one a step",
                weights=len(numbers),
                steps=len(steps),
                path=path,
            ),
            "range",
        )
        return
    for number in numbers:
        if not _is_positive(number):
            faults.add(
                pointer("metadata", "annotations", WEIGHTS),
                said("%(number)r is no weight: write a number above 0", number=number),
                "range",
            )
    for other in queues:
        theirs = (other["metadata"].get("annotations") or {}).get(PATH) or ""
        if other["metadata"]["name"] != queue["metadata"].get("name") and theirs.startswith(path + "/"):
            where, name = pointer("metadata", "annotations", PATH), other["metadata"]["name"]
            faults.add(
                where,
                said(
                    "%(path)r holds queue %(name)s (%(theirs)r): only the end of a path is a queue",
                    path=path,
                    name=name,
                    theirs=theirs,
                ),
                "conflict",
            )


def _is_positive(text: str) -> bool:
    try:
        return text.isascii() and "_" not in text and 0 < float(text) < float("inf")
    except ValueError:
        return False
