"""Manifests with one thing wrong, and what is said of them."""

from __future__ import annotations

import copy
from typing import Any

from cluster.errors import NotFound
from cluster.port import Page
from jobs.manifest import default, validate
from tests.jobs.world import job, task

POD = "/spec/tasks/0/template/spec"
BOX = f"{POD}/containers/0"


class Queues:
    """A reader that knows queues only."""

    def __init__(self, **queues: dict[str, Any]) -> None:
        self.queues = {"default": {}, "root": {}} | queues

    def get(self, kind: Any, name: str, namespace: str = "") -> dict[str, Any]:
        if name not in self.queues:
            raise NotFound(name)
        return {"metadata": {"name": name}, **self.queues[name]}

    def list(self, kind: Any, namespace: str = "", **more: Any) -> Page:
        return Page([self.get(kind, name) for name in self.queues], "1")


def faults(manifest: dict[str, Any], queues: Queues | None = None) -> dict[str, str]:
    """Pointer → message after defaulting."""
    obj = copy.deepcopy(manifest)
    default(obj)
    return {fault.pointer: fault.message for fault in validate(obj, queues or Queues())}


def changed(path: str, value: Any) -> dict[str, Any]:
    """A sound job with one value set; a path part that is a number is a list index."""
    manifest = job("train", task(), task("second", 1))
    here: Any = manifest
    *parents, last = path.strip("/").split("/")
    for part in parents:
        here = here[int(part)] if part.isdigit() else here.setdefault(part, {})
    if last.isdigit():
        here[int(last)] = value
    else:
        here[last] = value
    return manifest
