"""The queue form: amounts a resource beside weight, priority and place in the tree.

The form keeps what it showed (`was-…`), so a save sends only what the user changed, and a conflict can say whether two
edits touch each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext_lazy as _

from cluster import pointers
from cluster.errors import FieldError
from cluster.port import Obj
from cluster.said import words
from cluster.validation import without_nulls

AMOUNTS = ("guarantee", "deserved", "capability")
LABELS = {
    "name": _("Name"),
    "parent": _("Parent"),
    "weight": _("Weight"),
    "priority": _("Priority"),
    "reclaimable": _("Reclaimable"),
    "guarantee": _("Guarantee"),
    "deserved": _("Deserved"),
    "capability": _("Capability"),
}
MAX_RESOURCES = 64
NEW = "new"
"""The place of a resource that is being added: its amounts are posted as `capability.new`, its name as `resource.new`."""


@dataclass(slots=True)
class Input:
    """One input: what it shows, what it showed when editing began, and its faults."""

    key: str
    value: str
    was: str = ""
    errors: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        return self.value != self.was

    @property
    def id(self) -> str:
        return "q-" + re.sub(r"[^a-zA-Z0-9-]", "-", self.key)

    @property
    def resource(self) -> str:
        """The resource that it is an amount of; empty for what has none."""
        return self.key.partition(".")[2]

    @property
    def label(self) -> Any:
        return LABELS[self.key.partition(".")[0]]


class QueueForm:
    """The inputs of one queue, by key: `weight`, `parent`, …, `capability.nvidia.com/gpu`."""

    def __init__(self, resources: Iterable[str], inputs: dict[str, Input], name: str = "", version: str = "") -> None:
        self.resources = list(resources)
        self.inputs = inputs
        self.name = name
        self.version = version
        self.errors: list[str] = []

    @classmethod
    def of(cls, obj: Obj, resources: Iterable[str]) -> QueueForm:
        """As the cluster has the queue now."""
        values = flatten(obj.get("spec") or {})
        names = _with_own(resources, values)
        meta = obj.get("metadata") or {}
        inputs = {key: Input(key, values.get(key, ""), values.get(key, "")) for key in _keys(names)}
        inputs["name"] = Input("name", "")
        inputs["resource.new"] = Input("resource.new", "")
        return cls(names, inputs, meta.get("name", ""), str(meta.get("resourceVersion", "")))

    @classmethod
    def posted(cls, data: Mapping[str, str], resources: Iterable[str], name: str = "") -> QueueForm:
        """As the user left it."""
        names = list(dict.fromkeys([*resources, *_posted_resources(data)]))[:MAX_RESOURCES]
        inputs = {key: Input(key, data.get(key, "").strip(), data.get(f"was-{key}", "").strip()) for key in _keys(names)}
        for key in ("name", "resource.new"):
            inputs[key] = Input(key, data.get(key, "").strip())
        return cls(names, inputs, name, data.get("version", ""))

    @property
    def rows(self) -> list[tuple[str, list[Input]]]:
        """The table of amounts."""
        return [(name, [self.inputs[f"{part}.{name}"] for part in AMOUNTS]) for name in self.resources]

    @property
    def new_row(self) -> list[Input]:
        return [self.inputs[f"{part}.{NEW}"] for part in AMOUNTS]

    @property
    def changed(self) -> dict[str, str]:
        """The texts that differ from what was shown."""
        return {key: each.value for key, each in self.inputs.items() if key != "resource.new" and each.changed}

    def told(self) -> list[tuple[Input, str]]:
        """The inputs that were changed, each with its resource, which is empty for what has none."""
        found = []
        for key, each in self.inputs.items():
            part, _dot, resource = key.partition(".")
            if each.changed and part not in ("name", "resource"):
                found.append((each, self.inputs["resource.new"].value if resource == NEW else resource))
        return found

    def patch(self) -> dict[str, Any]:
        """The changes as a merge patch of the spec."""
        spec: dict[str, Any] = {}
        added = self.inputs["resource.new"].value
        for key, text in self.changed.items():
            part, _dot, resource = key.partition(".")
            if part == "name":
                continue
            if not resource:
                spec[part] = _scalar(part, text)
            elif resource != NEW or added:
                place = spec.setdefault("guarantee", {}) if part == "guarantee" else spec
                inner = place.setdefault("resource" if part == "guarantee" else part, {})
                inner[added if resource == NEW else resource] = text or None
        return spec

    def manifest(self) -> Obj:
        """The form as a new queue."""
        return {"metadata": {"name": self.inputs["name"].value}, "spec": without_nulls(self.patch())}

    def blame(self, faults: Iterable[FieldError]) -> None:
        """Put each fault on its input, or above the form when it has none."""
        added = self.inputs["resource.new"].value
        for fault in faults:
            steps = pointers.steps(fault.pointer)
            if steps[:1] == ["metadata"]:
                steps = steps[1:]
            elif steps[:1] == ["spec"]:
                steps = [step for step in steps[1:] if step != "resource" or steps[1:2] != ["guarantee"]]
            if len(steps) > 1 and steps[1] == added:
                steps[1] = NEW
            found = self.inputs.get(".".join(steps[:2]))
            (found.errors if found else self.errors).append(words(fault.message))


def flatten(spec: Obj) -> dict[str, str]:
    """A queue's spec as texts by key."""
    values = {
        "weight": _text(spec.get("weight")),
        "priority": _text(spec.get("priority")),
        "reclaimable": "" if spec.get("reclaimable") is None else "yes" if spec["reclaimable"] else "no",
        "parent": _text(spec.get("parent")),
    }
    for part in AMOUNTS:
        amounts = spec.get(part) or {}
        if part == "guarantee":
            amounts = amounts.get("resource") or {}
        values.update({f"{part}.{resource}": _text(value) for resource, value in amounts.items()})
    return values


def _keys(resources: Iterable[str]) -> list[str]:
    amounts = [f"{part}.{resource}" for resource in [*resources, NEW] for part in AMOUNTS]
    return ["parent", "weight", "priority", "reclaimable", *amounts]


def _with_own(resources: Iterable[str], values: Mapping[str, str]) -> list[str]:
    own = [key.partition(".")[2] for key in values if "." in key]
    return list(dict.fromkeys([*resources, *own]))


def _posted_resources(data: Mapping[str, str]) -> list[str]:
    names = [key.partition(".")[2] for key in data if key.partition(".")[0] in AMOUNTS]
    return [name for name in names if name != NEW]


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _scalar(part: str, text: str) -> Any:
    """A changed scalar as the manifest has it; what is no number stays text, so that the rules refuse it by name."""
    if text == "":
        return None
    if part == "reclaimable":
        return {"yes": True, "no": False}.get(text, text)
    if part in ("weight", "priority") and re.fullmatch(r"-?[0-9]{1,10}", text):
        return int(text)
    return text
