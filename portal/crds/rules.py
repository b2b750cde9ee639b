"""What a schema's types cannot say, in CEL: rules of admission that an API server can check by itself.

A rule hangs on a place (`spec.tasks[]` is an entry of the list). Longer lists than the bounds below are no Job of anybody's; the
server wants bounds to know what a rule may cost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jobs.policies import PUBLIC_ACTIONS, PUBLIC_EVENTS

Schema = dict[str, Any]

_FIXED = ("schedulerName", "queue", "maxRetry", "ttlSecondsAfterFinished", "minSuccess", "runningEstimate")


def _rule(rule: str, message: str) -> dict[str, str]:
    return {"rule": rule, "message": message}


def _unchanged(field: str) -> dict[str, str]:
    same = f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    return _rule(same, f"{field} cannot change any more")


_POLICY = [
    _rule("has(self.exitCode) || has(self.event) || has(self.events)", "an entry needs an event or an exitCode"),
    _rule("!(has(self.exitCode) && (has(self.event) || has(self.events)))", "an entry has events or an exitCode, not both"),
    _rule("!has(self.exitCode) || self.exitCode != 0", "exitCode must not be 0: that is success"),
]
_MINIMUM = "minAvailable must not be above replicas"
_TASK = [
    _rule("!has(self.minAvailable) || self.minAvailable <= (has(self.replicas) ? self.replicas : 0)", _MINIMUM),
    _rule(
        "!has(self.partitionPolicy) || self.partitionPolicy.totalPartitions * self.partitionPolicy.partitionSize"
        " == (has(self.replicas) ? self.replicas : 0)",
        "replicas must be totalPartitions x partitionSize",
    ),
]
_JOB = [
    _rule("!has(self.tasks) || !has(oldSelf.tasks) || size(self.tasks) == size(oldSelf.tasks)", "tasks cannot come or go"),
    *(_unchanged(field) for field in _FIXED),
]
_MEMBER = [
    _rule(
        "[has(self.exactMatch), has(self.regexMatch), has(self.labelMatch)].filter(x, x).size() == 1",
        "must have exactly one of exactMatch, regexMatch, labelMatch",
    )
]

RULES: dict[str, dict[str, list[dict[str, str]]]] = {
    "jobs.batch.volcano.sh": {
        "spec": _JOB,
        "spec.tasks[]": _TASK,
        "spec.policies[]": _POLICY,
        "spec.tasks[].policies[]": _POLICY,
    },
    "hypernodes.topology.volcano.sh": {"spec.members[].selector": _MEMBER},
}

_POLICY_WORDS: Schema = {
    "properties": {
        "event": {"enum": ["", *map(str, PUBLIC_EVENTS)]},
        "events": {"items": {"enum": list(map(str, PUBLIC_EVENTS))}, "maxItems": 64},
        "action": {"enum": list(map(str, PUBLIC_ACTIONS))},
    },
    "required": ["action"],
    "maxProperties": 16,
}
NARROWER: dict[str, dict[str, Schema]] = {
    "jobs.batch.volcano.sh": {
        "spec": {"required": ["tasks"]},
        "spec.tasks": {"minItems": 1, "maxItems": 1000},
        "spec.policies": {"maxItems": 100},
        "spec.tasks[].policies": {"maxItems": 100},
        "spec.policies[]": _POLICY_WORDS,
        "spec.tasks[].policies[]": _POLICY_WORDS,
        "spec.volumes[]": {"required": ["mountPath"]},
        "spec.volumes[].mountPath": {"pattern": "^[^:]+$"},
    },
    "hypernodes.topology.volcano.sh": {"spec.members": {"maxItems": 10000}},
}
"""What a schema says beyond its shape: words of a list, bounds, fields that are required once admission has completed them."""


def tighten(schema: Schema, name: str) -> Schema:
    """Add to a kind's schema, in place, what is said of it above."""
    for place, more in NARROWER.get(name, {}).items():
        _merge(_at(schema, place), more)
    for place, rules in RULES.get(name, {}).items():
        _at(schema, place)["x-kubernetes-validations"] = rules
    return schema


def _at(schema: Schema, place: str) -> Schema:
    for step in _steps(place):
        schema = schema["items"] if step == "[]" else schema["properties"][step]
    return schema


def _steps(place: str) -> Iterable[str]:
    for part in place.split("."):
        yield part.removesuffix("[]")
        if part.endswith("[]"):
            yield "[]"


def _merge(schema: Schema, more: Schema) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(schema.get(key), dict):
            _merge(schema[key], value)
        elif key == "required":
            schema[key] = [*schema.get(key, []), *value]
        else:
            schema[key] = value
