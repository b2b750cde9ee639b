"""The tensorflow plugin: every pod knows the whole cluster and its own place in it, by `TF_CONFIG`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cluster import objects
from cluster.errors import FieldError
from cluster.port import Obj
from cluster.said import said
from jobs.keys import index_of
from jobs.plugins.base import Plugin, tasks_of
from jobs.plugins.containers import add_env, containers
from jobs.plugins.flags import Flag
from jobs.plugins.hosts import domain, joined_length
from jobs.plugins.limits import too_long
from jobs.roles import role_of

CONFIG = "TF_CONFIG"
_KINDS = ("ps", "worker", "chief", "evaluator")
"""TensorFlow's own names, in the order in which the cluster lists them; each flag names the role that plays it."""
_OWN_PLACE = 200
"""Bytes for a pod's own place, behind the cluster."""


class Tensorflow(Plugin):
    """`TF_CONFIG` in the regular containers."""

    name = "tensorflow"
    flags = (*(Flag(kind, kind) for kind in _KINDS), Flag("port", 2222, is_port=True))
    needs = ("svc",)
    _cluster: str | None = None

    def on_pod_create(self, pod: Obj, job: Obj) -> None:
        """Add the variable; a job of a single pod is no cluster."""
        if is_single(job["spec"]):
            return
        if self._cluster is None:
            self._cluster = self._cluster_of(job["spec"], objects.name(job))
        place = _json({"type": self._kind(role_of(pod)), "index": index_of(objects.name(pod))})
        text = f'{{"cluster":{self._cluster},"task":{place}}}'
        for container in containers(pod, init=False):
            add_env(container, (CONFIG, text))

    def check(self, spec: dict[str, Any], name: str) -> Iterator[FieldError]:
        """Each pod carries the whole cluster in one variable, which must not be longer than a program can be given."""
        if is_single(spec):
            return
        port = len(f'"":{self.arguments.whole("port")},')
        tasks = [task for task in tasks_of(spec) if task["name"] in map(self.arguments.text, _KINDS)]
        length = _OWN_PLACE + sum(joined_length(name, task) + port * int(task.get("replicas") or 0) for task in tasks)
        if why := too_long(CONFIG, length, said("use fewer pods")):
            yield FieldError(self.at(), why, "range")

    def _kind(self, name: str) -> str:
        """What a role plays. Of two flags that name the same role chief counts first, then worker; others play themselves."""
        for kind in ("chief", "worker", "ps", "evaluator"):
            if self.arguments.text(kind) == name:
                return kind
        return name

    def _cluster_of(self, spec: dict[str, Any], job: str) -> str:
        """The cluster, as JSON: equal for all pods."""
        port, found = self.arguments.whole("port"), {}
        for task in spec["tasks"]:
            kind = next((kind for kind in _KINDS if self.arguments.text(kind) == task.get("name")), None)
            if kind is not None:
                found[kind] = [f"{domain(job, task, each)}:{port}" for each in range(int(task.get("replicas") or 0))]
        return _json({kind: found[kind] for kind in _KINDS if found.get(kind)})


def is_single(spec: dict[str, Any]) -> bool:
    """Whether a job is one role of one pod."""
    tasks = spec.get("tasks") or []
    return len(tasks) == 1 and tasks[0].get("replicas") == 1


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
