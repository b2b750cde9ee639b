"""The submit form: one view of a draft. YAML is the truth; the form reads known fields from it and writes changed ones back.

What is posted is compared with what the form showed, and only the difference is written, into the YAML as it is now. So edits
made in the form and in the YAML between two answers both survive, with or without script.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from cluster.pointers import pointer
from jobs.submit import plugins
from jobs.submit.draft import Draft, Path
from jobs.submit.fields import JOB_FIELDS, TASK_FIELDS, VGPU, Place
from jobs.submit.lists import JOB_LISTS, TASK_LISTS

TASKS: Path = ("spec", "tasks")
MAX_TASKS = 40

ACTIONS = (
    ("", _("do nothing")),
    ("RestartJob", _("restart the job")),
    ("RestartTask", _("restart the task")),
    ("RestartPod", _("restart the pod")),
    ("AbortJob", _("abort the job")),
    ("TerminateJob", _("terminate the job")),
    ("CompleteJob", _("complete the job")),
)
GPU_KINDS = (
    ("", _("whole cards")),
    (VGPU, _("parts of cards (vGPU)")),
    ("amd.com/gpu", _("AMD cards")),
    ("gpu.intel.com/i915", _("Intel cards")),
)
SHARING = (("", _("any")), ("hami-core", "hami-core"), ("mig", _("MIG instances")), ("mps", "MPS"))
MODES = (("", _("none")), ("soft", _("soft")), ("hard", _("hard")))


@dataclass(slots=True)
class Input:
    """One input as the template shows it. `errors` are sentences; `changed` says that it differs from the draft's start."""

    key: str
    value: str
    pointer: str
    errors: list[str] = field(default_factory=list)
    changed: bool = False
    hints: list[tuple[str, str]] = field(default_factory=list)

    @property
    def id(self) -> str:
        return "f-" + self.key.replace(".", "-")


def task_count(draft: Draft) -> int:
    """How many tasks of the draft the form shows."""
    tasks = draft.get(TASKS)
    return min(len(tasks), MAX_TASKS) if isinstance(tasks, list) else 0


def places(draft: Draft) -> Iterator[Place]:
    """Every input that the form has for this draft."""
    for each in (*JOB_FIELDS, *JOB_LISTS, *plugins.FIELDS):
        yield Place(each, (), each.name)
    for index in range(task_count(draft)):
        for each in (*TASK_FIELDS, *TASK_LISTS):
            yield Place(each, (*TASKS, index), f"tasks.{index}.{each.name}")


def read(draft: Draft) -> dict[str, str]:
    """The form's texts by key."""
    return {place.key: place.field.read(draft, place.scope) for place in places(draft)}


def merge(draft: Draft, shown: Mapping[str, str], posted: Mapping[str, str]) -> list[str]:
    """Write into the draft what the form changed; returns the keys written. Keys that are not posted are left alone."""
    written = []
    for place in list(places(draft)):
        new = posted.get(place.key)
        if new is None:
            continue
        new = new.replace("\r\n", "\n").strip()
        if new != shown.get(place.key, "").strip() and new != place.field.read(draft, place.scope):
            place.field.write(draft, place.scope, new)
            written.append(place.key)
    return written


def inputs(draft: Draft, start: Mapping[str, str] | None = None) -> dict[str, Input]:
    """The form's inputs by key, for a template."""
    found = {}
    for place in places(draft):
        value = place.field.read(draft, place.scope)
        changed = start is not None and start.get(place.key, "") != value
        found[place.key] = Input(place.key, value, pointer(*place.field.at(draft, place.scope)), [], changed)
    return found


def blame(fields: Mapping[str, Input], at: str, message: str) -> Input | None:
    """Put a fault on the input whose place in the manifest is nearest to the pointer; None when no input is near."""
    best = _nearest(fields, at)
    if best is not None:
        best.errors.append(message)
    return best


def hint(fields: Mapping[str, Input], at: str, message: str, kind: str = "warn") -> None:
    """Put something to know on the input that is nearest: `bad` for what can never start, else `warn`."""
    best = _nearest(fields, at)
    if best is not None:
        best.hints.append((message, kind))


def _nearest(fields: Mapping[str, Input], at: str) -> Input | None:
    best: Input | None = None
    for each in fields.values():
        if (each.pointer == at or at.startswith(each.pointer + "/")) and (best is None or len(each.pointer) > len(best.pointer)):
            best = each
    if best is None:  # a whole amount map or container is at fault: the first input inside it
        best = next((each for each in fields.values() if at.count("/") > 3 and each.pointer.startswith(at + "/")), None)
    return best


FOLDED = (*(each.name for each in TASK_LISTS), "gpu_kind", "vgpu_memory", "vgpu_cores", "vgpu_mode", "minimum", "on_completion")
"""Inputs of a task that are folded away until they are needed."""


def said(task: Mapping[str, Input]) -> list[str]:
    """What of a task stands in the inputs that are folded away, in a few words."""
    found = []
    if variables := _lines(task["env"]):
        found.append(ngettext("%(n)s variable", "%(n)s variables", variables) % {"n": variables})
    for name in ("shared_memory", "depends_on"):
        if value := task[name].value:
            words = {"shared_memory": _now("shared memory %(value)s"), "depends_on": _now("after %(value)s")}
            found.append(words[name] % {"value": value})
    if task["gpu_kind"].value == VGPU:
        found.append(_now("parts of cards"))
    found += [line for name in ("selector", "tolerations") for line in task[name].value.splitlines()]
    if task["on_completion"].value == "CompleteJob":
        found.append(_now("ends the job"))
    return found


def _lines(each: Input) -> int:
    return len(each.value.splitlines())


def needs_attention(task: Mapping[str, Input]) -> bool:
    """Whether something is wrong with what is folded away, or it was changed."""
    return any(task[name].errors or task[name].hints or task[name].changed for name in FOLDED)


def add_task(draft: Draft) -> None:
    """Append a task that is like the last one, under a free name."""
    tasks = draft.get(TASKS)
    names = {task.get("name") for task in tasks if isinstance(task, dict)} if isinstance(tasks, list) else set()
    stem = "worker" if "worker" not in names else "task"
    name = stem if stem not in names else next(f"{stem}-{n}" for n in range(2, 1000) if f"{stem}-{n}" not in names)
    last = _plain(tasks[-1]) if isinstance(tasks, list) and tasks and isinstance(tasks[-1], dict) else {}
    last.pop("dependsOn", None)
    draft.append(TASKS, {**last, "name": name, "replicas": 1})


def remove_task(draft: Draft, index: int) -> None:
    """Take one task out of the draft."""
    draft.remove((*TASKS, index))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
