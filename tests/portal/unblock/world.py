"""A small cluster with the real controllers and scheduler, and a copy of it that is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster import objects
from cluster.errors import NotFound
from cluster.kinds import JOB, NODE, PRIORITY_CLASS, QUEUE
from cluster.port import Obj
from jobs import keys, operations
from portal.scenario import objects as make
from portal.scenario.world import World
from portal.unblock.copy import Copy, View
from portal.unblock.ways import Asked, Way, ways
from scheduler import conf
from scheduler.framework import registry

PLUGINS = [
    [
        "priority",
        {"name": "gang", "enablePreemptable": False},
        "conformance",
        "overcommit",
        "drf",
        "predicates",
        "proportion",
        "nodeorder",
    ]
]
SETUP: dict[str, Any] = {"actions": ["enqueue", "allocate", "preempt", "reclaim", "backfill"], "plugins": PLUGINS}


class Stage:
    """A world and its copy."""

    def __init__(self, *, nodes: list[dict[str, Any]], queues: list[dict[str, Any]] | None = None, setup: Any = None) -> None:
        registry.load_builtin()
        setup = setup or SETUP
        self.world = World(setup)
        self.cluster = self.world.cluster
        for words in nodes:
            self.cluster.create(NODE, make.node(words))
        for words in queues or ():
            self.cluster.create(QUEUE, make.queue(words))
        self.world.settle()
        self.copy = Copy(self.cluster, lambda: loaded)
        loaded = conf.load(make.configuration(setup))

    def class_(self, name: str, value: int) -> None:
        self.cluster.create(PRIORITY_CLASS, make.priority_class(name, value))

    def submit(self, manifest: Obj) -> Obj:
        found = operations.submit(self.cluster, manifest)
        self.world.look()
        self.world.clock.advance(1)
        return found

    def rest(self) -> None:
        """Cycles until nothing changes."""
        self.world.until_quiet()

    def job(self, name: str) -> Obj:
        return self.world.job(name)

    def running(self, name: str) -> int:
        return len(self.world.running(name))

    def ways(self, name: str, queues: tuple[str, ...] = (), most: int = 3) -> list[Way]:
        with self.copy.pinned() as view:
            return list(ways(Asked(view, self.job(name), queues), most))

    def view(self, ask: Callable[[View], Any]) -> Any:
        with self.copy.pinned() as view:
            return ask(view)

    def apply(self, name: str, way: Way) -> None:
        """Do to the real cluster what a way says."""
        job = self.job(name)
        if way.code == "wait":
            self.end(str(way.values["job"]))
        elif way.in_place:
            self.cluster.patch(JOB, name, objects.namespace(job), way.patch)
        else:
            from cluster.embedded.patches import merge

            copy = merge({key: job[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": name}}, way.patch)
            operations.delete(self.cluster, "default", name)
            self.world.settle()
            self.submit(copy)
        self.world.settle()

    def end(self, group: str) -> None:
        """All pods of a job succeed."""
        name = next(objects.name(job) for job in self.cluster.list(JOB).items if f"default/{keys.group_name(job)}" == group)
        for pod in self.world.running(name):
            self.world.kubelet.end(pod, 0)
        self.world.settle()

    def gone(self, name: str) -> bool:
        try:
            self.cluster.get(JOB, name, "default")
        except NotFound:
            return True
        return False


def manifest(
    name: str, replicas: int, *, least: int | None = None, queue: str = "default", priority: str = "", **more: Any
) -> Obj:
    """A job of one role `w`; requests as words (`cpu=`, `gpu=`, `memory=`), `pod=` for more of the pod's spec."""
    pod = more.pop("pod", {})
    spec = more.pop("spec", {})
    requests = {make.resource_name(word): str(value) for word, value in more.items()}
    container = {"name": "main", "image": "busybox", "resources": {"requests": requests, "limits": dict(requests)}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container], **pod}}
    found = {
        "minAvailable": replicas if least is None else least,
        "queue": queue,
        "tasks": [{"name": "w", "replicas": replicas, "template": template}],
    }
    if priority:
        found["priorityClassName"] = priority
    return {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": found | spec,
    }
