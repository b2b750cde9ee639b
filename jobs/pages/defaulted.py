"""Which fields of a job its author did not write: admission filled them in."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cluster import documents
from cluster.disclosure import LAST_APPLIED
from cluster.errors import ApiError
from cluster.pointers import pointer
from cluster.port import Obj
from jobs.manifest import default
from jobs.models import Job

_ABSENT = (None, "", 0)
"""What counts as not written where admission wrote something."""


@dataclass(frozen=True, slots=True)
class Filled:
    """Pointers of what was filled in. `is_known` says that what was written had been seen; else these are the fields that
    are as admission fills them in."""

    pointers: list[str]
    is_known: bool


def filled(written: Obj, stored: Obj) -> list[str]:
    """Pointers below `/spec` of what stands in the stored object and was not written."""
    return [pointer("spec", *path) for path in _more(written.get("spec"), stored.get("spec"))]


def _more(written: Any, stored: Any) -> Iterator[tuple[str | int, ...]]:
    """The paths that only the stored value has."""
    if isinstance(stored, dict) and isinstance(written, dict):
        for key, value in stored.items():
            if key not in written or (written[key] in _ABSENT and value not in _ABSENT and written[key] is not False):
                yield (key,)
            else:
                yield from ((key, *rest) for rest in _more(written[key], value))
    elif isinstance(stored, list) and isinstance(written, list):
        for index, (old, new) in enumerate(zip(written, stored, strict=False)):
            yield from ((index, *rest) for rest in _more(old, new))


def of(job: Job) -> Filled:
    """What is known of a job: from its submission, from kubectl's copy of what was applied, else from the defaults."""
    if job.defaulted is not None:
        return Filled(list(job.defaulted), True)
    notes = (job.manifest.get("metadata") or {}).get("annotations") or {}
    try:
        written = json.loads(notes[LAST_APPLIED])
    except (KeyError, TypeError, ValueError):
        return Filled(list(_as_default(job.manifest)), False)
    return Filled(filled(written if isinstance(written, dict) else {}, job.manifest), True)


def _as_default(stored: Obj) -> Iterator[str]:
    """Fields that come back as they are when they are left out."""
    spec = stored.get("spec") or {}
    places: list[tuple[str | int, ...]] = [(name,) for name in ("queue", "schedulerName", "maxRetry", "minAvailable")]
    for index, _task in enumerate(spec.get("tasks") or ()):
        places += [("tasks", index, name) for name in ("maxRetry", "minAvailable", "replicas")]
        places.append(("tasks", index, "template", "spec", "dnsPolicy"))
    for place in places:
        without = {"spec": copy.deepcopy(spec)}
        holder, value = _holder(without["spec"], place), _holder(spec, place)
        if not isinstance(holder, dict) or place[-1] not in holder:
            continue
        del holder[place[-1]]
        default(without, str(spec.get("schedulerName") or ""))
        if holder.get(place[-1]) == value[place[-1]]:
            yield pointer("spec", *place)


def _holder(spec: Any, place: tuple[str | int, ...]) -> Any:
    """The mapping that a field stands in; None where there is none."""
    for step in place[:-1]:
        try:
            spec = spec[step]
        except (KeyError, IndexError, TypeError):
            return None
    return spec


def lines(text: str, pointers: list[str]) -> set[int]:
    """The lines (from 1) of a YAML text that these fields take."""
    try:
        (document,) = documents.load(text)
    except (ApiError, ValueError):
        return set()
    rows = text.splitlines()
    found: set[int] = set()
    for each in pointers:
        first = document.line_of(each)
        if first is None or _last_key(each) not in rows[first - 1]:
            continue
        column = rows[first - 1].index(_last_key(each))
        found.add(first)
        for number in range(first + 1, len(rows) + 1):
            if not _belongs(rows[number - 1], column):
                break
            found.add(number)
    return found


def _belongs(row: str, column: int) -> bool:
    """Whether a line is part of the value of a key that begins in this column: deeper, or an item of its list."""
    bare = row.lstrip(" ")
    depth = len(row) - len(bare)
    return not bare or depth > column or (depth == column and bare.startswith("- "))


def _last_key(each: str) -> str:
    return each.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
