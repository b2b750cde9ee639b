"""The vocabulary of scenario files, and cases as they are read.

Every word of the vocabulary is here, also those whose features Basalt does not have yet: a case that uses such a word
fails and says so, while a word that is not here is a fault of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from jobs.choices import JobPhase
from portal.scenario.reading import (
    Fault,
    FileError,
    Reader,
    Shape,
    amount,
    anything,
    at_least,
    choice,
    either,
    fields,
    flag,
    just_true,
    listed,
    mapped,
    number,
    pattern,
    sentence,
    text,
)  # fmt: skip
from scheduler.conf import SWITCHES
from scheduler.framework import registry

Expectations = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens: its word, its value, and where it stands."""

    word: str
    value: Any
    line: int


@dataclass(frozen=True, slots=True)
class Case:
    """One case as written. `expect` holds mappings of expectations, and sentences for people."""

    id: str
    setup: dict[str, Any]
    steps: list[Step]
    expect: list[Expectations | str]
    source: str = ""
    area: str = ""
    severity: str = "medium"
    arguable: bool = False
    note: str = ""
    line: int = 1

    def words(self) -> frozenset[str]:
        """All words of steps and expectations that the case uses."""
        found = {word for expectations in self._expectations() for word in expectations}
        return frozenset(found | {step.word for step in _flat(self.steps)})

    def nevers(self) -> list[Expectations]:
        """What must not hold at any moment."""
        return [expectations["never"] for expectations in self._expectations() if "never" in expectations]

    def _expectations(self) -> Iterator[Expectations]:
        for item in self.expect:
            if not isinstance(item, str):
                yield from _nested(item)
        for step in _flat(self.steps):
            if step.word == "check":
                yield from _nested(step.value)


def _flat(steps: list[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        if step.word == "repeat_steps":
            yield from _flat(step.value["steps"])


def _nested(expectations: Expectations) -> Iterator[Expectations]:
    yield expectations
    for word, value in expectations.items():
        for inner in value if word in ("one_of", "exactly_one_of") else [value] if word == "never" else []:
            yield from _nested(inner)


def load(content: str) -> list[Case]:
    """The cases of a file. Raises FileError with every fault and its line."""
    registry.load_builtin()
    reader = Reader()
    root = reader.root(content)
    try:
        cases: list[Case] = listed(_case)(reader, root, "cases")
    except RecursionError:
        raise FileError(
            Fault(root.start_mark.line + 1, "the file is nested too deep, or an alias stands inside itself")
        ) from None
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            reader.faults.append(Fault(case.line, f"the id {case.id!r} is given twice"))
        seen.add(case.id)
    if reader.faults:
        raise FileError(*reader.faults)
    return cases


# --- amounts, names, ranges ---------------------------------------------------------------------------------------

names = listed(text)
amounts = mapped(amount)
counts = mapped(number)
span = either(scalar=number, mapping=fields({"min": number, "max": number}))

# --- setup --------------------------------------------------------------------------------------------------------

_CARDS = fields({"count": at_least(1), "memory_mib": at_least(1), "sharers": at_least(1)}, "count", "memory_mib")
_NODE: dict[str, Shape] = {
    "name": text, "cpu": amount, "memory": amount, "gpu": number, "gpus": listed(_CARDS), "pods": number,
    "labels": mapped(text), "extra": amounts,
}  # fmt: skip
_NODES = either(
    sequence=listed(fields(_NODE, "name")), mapping=fields({**_NODE, "count": number, "prefix": text}, "count", "prefix")
)
_QUEUE: dict[str, Shape] = {
    "name": text, "weight": number, "capability": amounts, "deserved": amounts, "guarantee": amounts, "priority": number,
    "parent": text, "reclaimable": flag,
}  # fmt: skip
_QUEUE_CHANGES = {"queue": text, **{word: shape for word, shape in _QUEUE.items() if word != "name"}}


def _plugin_name(reader: Reader, node: yaml.Node, where: str) -> str:
    found = text(reader, node, where)
    if found and found not in registry.plugins:
        reader.fault(node, where, f"there is no scheduler plugin {found!r}")
    return found


def _action_name(reader: Reader, node: yaml.Node, where: str) -> str:
    found = text(reader, node, where)
    if found and found not in registry.actions:
        reader.fault(node, where, f"there is no action {found!r}")
    return found


_PLUGIN = either(
    scalar=_plugin_name,
    mapping=fields({"name": _plugin_name, "arguments": mapped(anything), **dict.fromkeys(SWITCHES, flag)}, "name"),
)


def _object(reader: Reader, node: yaml.Node, where: str) -> dict[str, Any]:
    """A ConfigMap or jobs, each with words of its own."""
    kinds = {key: value.value for key, _, value in reader.entries(node, where) if isinstance(value, yaml.ScalarNode)}
    if kinds.get("kind") == "Job":
        return _JOBS(reader, node, where)
    return _CONFIG_MAP(reader, node, where)


_JOBS: Any = fields(
    {"kind": choice("Job"), "count": at_least(1), "namespace": text, "queue": text, "phase": choice(*JobPhase.values)},
    "kind",
    "count",
)
_CONFIG_MAP: Any = fields({"kind": choice("ConfigMap", "Job"), "name": text, "data": mapped(sentence)}, "kind", "name")

# --- jobs ---------------------------------------------------------------------------------------------------------

_VGPU = fields({"number": at_least(1), "memory_mib": number, "memory_percent": number, "cores": number})
_TOPOLOGY = fields({"mode": choice("hard", "soft"), "highestTier": number, "highestTierName": text})
_ASKS: dict[str, Shape] = {"cpu": amount, "memory": amount, "gpu": number, "vgpu": _VGPU}
_TASK = fields(
    {
        **_ASKS, "replicas": number, "min": number, "dependsOn": names,
        "policies": listed(fields({"event": text, "exitCode": number, "action": text}, "action")),
        "nodeSelector": mapped(text),
        "partitions": fields({"total": at_least(1), "size": at_least(1), "topology": _TOPOLOGY}, "total", "size"),
    },
    "replicas",
)  # fmt: skip
_JOB: dict[str, Shape] = {
    "queue": text, "min": number, "priority": text, "preemptable": flag, "maxRetry": number, "plugins": mapped(names),
    "topology": _TOPOLOGY, "tasks": mapped(_TASK),
}  # fmt: skip
_FLOW_PART = fields({"name": text, "dependsOn": names}, "name")

_SETUP = fields(
    {
        "nodes": _NODES,
        "queues": listed(fields(_QUEUE, "name")),
        "priorities": mapped(number),
        "actions": listed(_action_name),
        "plugins": listed(listed(_PLUGIN)),
        "hypernodes": listed(
            fields({"name": text, "tier": number, "tierName": text, "nodes": names, "hypernodes": names}, "name", "tier")
        ),
        "templates": listed(fields({"name": text, **_JOB}, "name", "tasks")),
        "objects": listed(_object),
        "page_size": at_least(1),
    }
)

# --- expectations -------------------------------------------------------------------------------------------------


def expectation(reader: Reader, node: yaml.Node, where: str) -> Expectations:
    """One mapping of expectations, all of which must hold together."""
    found: Expectations = fields(EXPECT)(reader, node, where)
    if isinstance(node, yaml.MappingNode) and not node.value:
        reader.fault(node, where, "must expect something")
    return found


_WORDS = listed(either(scalar=text, sequence=names))
_REASON = fields({"numbers": _WORDS, "words": _WORDS, "says": text})
EXPECT: dict[str, Shape] = {
    "one_of": listed(expectation), "exactly_one_of": listed(expectation), "never": expectation,
    "running": counts, "running_at_least": counts, "running_at_most": counts, "running_total": counts,
    "running_by_queue": counts, "running_pods": names, "pending": names, "pending_count": counts, "bound_count": number,
    "evicted": names, "evicted_count": number, "whole_gangs_evicted": number,
    "evictions_in_last": fields({"cycles": at_least(1), "count": number}, "cycles", "count"),
    "job_admitted": names, "job_not_admitted": names, "pods_created": counts, "pods": mapped(names),
    "pod_replaced": names, "pod_not_replaced": names, "succeeded": counts, "job_phase": mapped(text),
    "flow_phase": mapped(text), "flow_jobs": mapped(names), "jobs_of": counts, "not_created": names,
    "on_node": mapped(text), "nodes_used": mapped(names),
    "domains_used": mapped(fields({"tier": number, "min": number, "max": number}, "tier")),
    "deserved": mapped(amounts), "queue_allocated": mapped(amounts), "queue_limit": mapped(amounts),
    "effective_limit": mapped(amounts), "queue_state": mapped(text), "queue_weight": counts,
    "accepted": names, "refused": names, "message_names": names, "gone": fields({"queues": names, "jobs": names}),
    "reason": mapped(_REASON),
    "memory_used_per_card": span, "cores_per_card": span, "pods_per_card": span, "memory_booked_per_pod_mib": counts,
    "cards_used": counts, "gpu_used_per_node": span,
    "env": mapped(mapped(sentence)), "env_absent": mapped(names), "plugins_in_force": mapped(names),
    "host_file": mapped(mapped(names)), "created_before_pods": mapped(names), "configmap_unchanged": mapped(mapped(sentence)),
    "port_open_on_every_container": counts,
    "page_shows": mapped(names), "filter_choices_include": mapped(names), "rows_after_filter": number, "total_shown": number,
    "page_is": number,
}  # fmt: skip

# --- steps --------------------------------------------------------------------------------------------------------


def _step(reader: Reader, node: yaml.Node, where: str) -> Step | None:
    entries = reader.entries(node, where)
    if len(entries) != 1:
        if isinstance(node, yaml.MappingNode):
            reader.fault(node, where, f"a step is a mapping with one word, this has {len(entries)}")
        return None
    word, key, value = entries[0]
    shape = STEPS.get(word)
    if shape is None:
        reader.fault(key, where, f"{word!r} is no step; known are {', '.join(sorted(STEPS))}")
        return None
    return Step(word, shape(reader, value, f"{where}.{word}"), key.start_mark.line + 1)


def _steps(reader: Reader, node: yaml.Node, where: str) -> list[Step]:
    return [step for step in listed(_step)(reader, node, where) if step is not None]


_CONTAINER = fields(_ASKS)
STEPS: dict[str, Shape] = {
    "submit": fields({"job": text, **_JOB}, "job", "tasks"),
    "submit_many": fields({"job": text, "count": at_least(1), **_JOB}, "job", "count", "tasks"),
    "submit_pod": fields(
        {"name": text, "queue": text, "nodeSelector": mapped(text), "containers": listed(_CONTAINER)}, "name", "containers"
    ),
    "submit_flow": fields({"name": text, "flows": listed(_FLOW_PART), "retain": choice("retain", "delete")}, "name", "flows"),
    "submit_cron": fields(
        {"name": text, "schedule": text, "concurrency": choice("Allow", "Forbid", "Replace"), "job": fields(_JOB, "tasks")},
        "name", "schedule", "job",
    ),
    "schedule": either(scalar=choice("until-quiet", "one-cycle"), mapping=fields({"cycles": at_least(1)}, "cycles")),
    "settle": just_true,
    "finish": fields({"pod": text, "exit": number}, "pod", "exit"),
    "finish_all": fields({"job": text, "flow": text, "exit": number}, "exit"),
    "finish_some": fields({"job": text, "count": number, "exit": number}, "job", "count", "exit"),
    "scale": fields({"job": text, "task": text, "replicas": number}, "job", "task", "replicas"),
    "delete": fields({"job": text, "queue": text, "pod": text}),
    "job_action": fields(
        {"job": text, "action": choice("suspend", "resume", "abort", "restart", "terminate", "complete")}, "job", "action"
    ),
    "queue_action": fields({"queue": text, "action": choice("open", "close")}, "queue", "action"),
    "create_queue": fields(_QUEUE, "name"),
    "queue_update": fields(_QUEUE_CHANGES, "queue"),
    "edit_queue": fields(_QUEUE_CHANGES, "queue"),
    "node_update": fields({"node": text, **{word: shape for word, shape in _NODE.items() if word != "name"}}, "node"),
    "lose_node_of": fields({"pod": text}, "pod"),
    "pod_state": fields({"pod": text, "state": text}, "pod", "state"),
    "restart_controller": just_true,
    "lose": fields({"cron": text, "field": text}, "cron", "field"),
    "clock": fields({"to": pattern(r"([01][0-9]|2[0-3]):[0-5][0-9]", "a time of day such as '09:30'")}, "to"),
    "repeat": fields({"times": at_least(1), "fresh": just_true}, "times", "fresh"),
    "repeat_steps": fields({"times": at_least(1), "steps": _steps}, "times", "steps"),
    "check": expectation,
    "open_page": either(scalar=text, sequence=names),
    "filter": mapped(text),
}  # fmt: skip

PAGE_WORDS = frozenset({
    "open_page", "filter", "edit_queue", "page_shows", "filter_choices_include", "rows_after_filter", "total_shown", "page_is",
})  # fmt: skip
"""Words that need the portal's pages, and so a database."""

# --- cases --------------------------------------------------------------------------------------------------------


def _case(reader: Reader, node: yaml.Node, where: str) -> Case:
    named = [v.value for k, _, v in reader.entries(node, where) if k == "id" and isinstance(v, yaml.ScalarNode)]
    found = fields(_CASE, "id", "setup", "steps", "expect")(reader, node, f"case {named[0]}" if named else where)
    case = Case(**{"id": "", "setup": {}, "steps": [], "expect": []} | found, line=node.start_mark.line + 1)
    places = [number for number, step in enumerate(case.steps, 1) if step.word == "repeat"]
    if places and places != [len(case.steps)]:
        reader.fault(node, f"case {case.id}", "repeat is the last step, and stands once")
    return case


_CASE: dict[str, Shape] = {
    "id": text, "source": text, "area": text, "severity": choice("high", "medium", "low"), "setup": _SETUP, "steps": _steps,
    "expect": listed(either(scalar=text, mapping=expectation)), "arguable": flag, "note": text,
}  # fmt: skip
