"""The fields of a job that the submit form knows, each tied to its place in the manifest.

A field reads its text from a draft and writes a changed text back. What it cannot make sense of it writes as it was typed:
the manifest's own rules then say what is wrong, once, for the form, the YAML and the API alike.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any

from cluster.objects import is_gpu
from jobs.submit.draft import Draft, Path

GPU = "nvidia.com/gpu"
GPU_PRODUCT = "nvidia.com/gpu.product"
VGPU, VGPU_MEMORY, VGPU_CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
VGPU_MODE = "volcano.sh/vgpu-mode"
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60))


class Field:
    """One value under `scope` (() for the job, ("spec", "tasks", 2) for a task)."""

    def __init__(self, name: str, *path: str | int) -> None:
        self.name = name
        self.path = path

    def at(self, draft: Draft, scope: Path) -> Path:
        """Where the value stands or would stand."""
        return (*scope, *self.path)

    def read(self, draft: Draft, scope: Path) -> str:
        value = draft.get(self.at(draft, scope))
        return "" if value is None else self.show(value)

    def write(self, draft: Draft, scope: Path, text: str) -> None:
        where = self.at(draft, scope)
        if text == "":
            draft.remove(where)
        else:
            draft.set(where, self.value(text))

    def show(self, value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value) if isinstance(value, str | int | float) else ""

    def value(self, text: str) -> Any:
        return text


class Number(Field):
    """A whole number."""

    def value(self, text: str) -> Any:
        return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text


class Seconds(Number):
    """Seconds, shown in the largest unit that divides them: 604800 is `7d`."""

    def show(self, value: Any) -> str:
        if isinstance(value, int) and not isinstance(value, bool):
            for unit, size in _UNITS:
                if value >= size and value % size == 0:
                    return f"{value // size}{unit}"
        return super().show(value)

    def value(self, text: str) -> Any:
        found = re.fullmatch(r"([0-9]{1,9}) ?([dhms])", text)
        return int(found[1]) * dict(_UNITS, s=1)[found[2]] if found else super().value(text)


class Mode(Field):
    """The network topology's mode; without one there is no limit either."""

    def write(self, draft: Draft, scope: Path, text: str) -> None:
        if text == "":
            draft.remove((*scope, "spec", "networkTopology"))
        else:
            super().write(draft, scope, text)


class OnEvent(Field):
    """The action of the policy for one event, the job's or a task's; other policies stay as they are."""

    def __init__(self, name: str, event: str, *above: str) -> None:
        super().__init__(name, *above, "policies")
        self.event = event

    def at(self, draft: Draft, scope: Path) -> Path:
        policies = super().at(draft, scope)
        entries = draft.get(policies)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict) and (entry.get("event") == self.event or entry.get("events") == [self.event]):
                return (*policies, index, "action")
        return policies

    def show(self, value: Any) -> str:
        return value if isinstance(value, str) else ""

    def write(self, draft: Draft, scope: Path, text: str) -> None:
        where = self.at(draft, scope)
        if where[-1] == "action":
            if text:
                draft.set(where, text)
            else:
                draft.remove(where[:-1])
        elif text:
            draft.append(where, {"event": self.event, "action": text})


class Container(Field):
    """A value of the task's first container."""

    def __init__(self, name: str, *path: str | int) -> None:
        super().__init__(name, "template", "spec", "containers", 0, *path)

    def write(self, draft: Draft, scope: Path, text: str) -> None:
        if text:
            ensure_container(draft, scope)
        super().write(draft, scope, text)


class Amount(Container):
    """A resource of the first container. It is changed in `requests` and in `limits`, whichever names it; else in both."""

    def __init__(self, name: str, resource: str) -> None:
        super().__init__(name, "resources")
        self.resource = resource

    def key(self, draft: Draft, scope: Path) -> str:
        """The resource's name in this task."""
        return self.resource

    def _places(self, draft: Draft, scope: Path) -> list[Path]:
        base = super().at(draft, scope)
        key = self.key(draft, scope)
        return [(*base, half, key) for half in ("limits", "requests") if draft.get((*base, half, key)) is not None]

    def at(self, draft: Draft, scope: Path) -> Path:
        places = self._places(draft, scope)
        return places[0] if places else (*super().at(draft, scope), "limits", self.key(draft, scope))

    def write(self, draft: Draft, scope: Path, text: str) -> None:
        places = self._places(draft, scope)
        if text == "":
            for place in places:
                draft.remove(place)
            return
        ensure_container(draft, scope)
        base, key = super().at(draft, scope), self.key(draft, scope)
        for place in places or [(*base, "limits", key), (*base, "requests", key)]:
            old = draft.get(place)
            number = re.fullmatch(r"[0-9]{1,9}", text) and not isinstance(old, str)
            draft.set(place, int(text) if number else text)


class Gpus(Amount):
    """How many GPUs a pod asks for, under the name that the task already uses."""

    def __init__(self, name: str) -> None:
        super().__init__(name, GPU)

    def key(self, draft: Draft, scope: Path) -> str:
        resources = draft.get((*scope, "template", "spec", "containers", 0, "resources"))
        for half in ("limits", "requests"):
            amounts = resources.get(half) if isinstance(resources, dict) else None
            for name in amounts if isinstance(amounts, dict) else ():
                if isinstance(name, str) and (is_gpu(name) or name == VGPU):
                    return name
        return GPU


class GpuKind(Gpus):
    """What is asked for by that number: whole cards of a vendor, or parts of cards. Changing it renames the amount."""

    def read(self, draft: Draft, scope: Path) -> str:
        key = self.key(draft, scope)
        return key if key != GPU else ""

    def write(self, draft: Draft, scope: Path, text: str) -> None:
        old, new = self._places(draft, scope), text or GPU
        amounts = [draft.get(place) for place in old]
        for place, amount in zip(old, amounts, strict=True):
            if place[-1] != new:
                draft.remove(place)
                draft.set((*place[:-1], new), amount)
        if not old:
            ensure_container(draft, scope)
            for half in ("limits", "requests"):
                draft.set((*scope, "template", "spec", "containers", 0, "resources", half, new), 1)
        if new != VGPU:
            for resource in (VGPU_MEMORY, VGPU_CORES):
                Amount("", resource).write(draft, scope, "")


class Command(Container):
    """What the first container runs: the script of `sh -c`, or the words of the command."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "command")

    def _script(self, command: Any) -> bool:
        return (
            isinstance(command, list)
            and len(command) == 3
            and all(isinstance(word, str) for word in command)
            and command[0].rsplit("/", 1)[-1] in ("sh", "bash")
            and command[1] == "-c"
        )

    def read(self, draft: Draft, scope: Path) -> str:
        command = draft.get(self.at(draft, scope))
        if self._script(command):
            return str(command[2]).rstrip("\n")
        if isinstance(command, list) and all(isinstance(word, str) for word in command):
            return shlex.join(command)
        return ""

    def write(self, draft: Draft, scope: Path, text: str) -> None:
        where = self.at(draft, scope)
        old = draft.get(where)
        if text == "":
            draft.remove(where)
            return
        ensure_container(draft, scope)
        if self._script(old):
            draft.set((*where, 2), text)
            return
        words = _words(text) if isinstance(old, list) else None
        draft.set(where, words or ["sh", "-c", text])


def _words(text: str) -> list[str] | None:
    try:
        return shlex.split(text)
    except ValueError:
        return None


class Product(Field):
    """The GPU model that the task's node selector names."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "template", "spec", "nodeSelector", GPU_PRODUCT)


def ensure_container(draft: Draft, scope: Path) -> None:
    """Give the task a first container when it has none."""
    where = (*scope, "template", "spec", "containers")
    if draft.get((*where, 0)) is None:
        draft.append(where, {"name": str(draft.get((*scope, "name")) or "main")})


JOB_FIELDS: tuple[Field, ...] = (
    Field("name", "metadata", "name"),
    Field("namespace", "metadata", "namespace"),
    Field("queue", "spec", "queue"),
    Field("priority", "spec", "priorityClassName"),
    Number("min_available", "spec", "minAvailable"),
    Mode("topology", "spec", "networkTopology", "mode"),
    Number("tier", "spec", "networkTopology", "highestTierAllowed"),
    OnEvent("on_eviction", "PodEvicted", "spec"),
    OnEvent("on_failure", "PodFailed", "spec"),
    Number("max_retry", "spec", "maxRetry"),
    Seconds("keep", "spec", "ttlSecondsAfterFinished"),
)

TASK_FIELDS: tuple[Field, ...] = (
    Field("name", "name"),
    Number("replicas", "replicas"),
    Gpus("gpus"),
    Product("model"),
    Amount("cpu", "cpu"),
    Amount("memory", "memory"),
    GpuKind("gpu_kind"),
    Amount("vgpu_memory", VGPU_MEMORY),
    Amount("vgpu_cores", VGPU_CORES),
    Field("vgpu_mode", "template", "metadata", "annotations", VGPU_MODE),
    Number("minimum", "minAvailable"),
    OnEvent("on_completion", "TaskCompleted"),
    Container("image", "image"),
    Command("command"),
)


@dataclass(frozen=True, slots=True)
class Place:
    """One input of the form: its field, the scope it is read in, and the name it is posted under."""

    field: Field
    scope: Path
    key: str
