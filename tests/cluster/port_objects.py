"""Small objects and watches of them, for suites over any port."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster.kinds import CONFIG_MAP
from cluster.port import Cluster, Obj, Watch, WatchEvent

NS = "suite"


def config(name: str, data: dict[str, str] | None = None, **metadata: Any) -> Obj:
    return {"metadata": {"name": name, "namespace": NS, **metadata}, "data": data or {}}


def pod(name: str, **metadata: Any) -> Obj:
    container = {"name": "main", "image": "busybox", "command": ["sleep", "1"]}
    return {"metadata": {"name": name, "namespace": NS, **metadata}, "spec": {"containers": [container]}}


def reference(obj: Obj, *, block: bool = True) -> Obj:
    meta = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": block,
    }


def names(port: Cluster, **selectors: Any) -> list[str]:
    return [obj["metadata"]["name"] for obj in port.list(CONFIG_MAP, NS, **selectors).items]


def collect(watch: Watch, until: Callable[[list[WatchEvent]], bool], seconds: float = 5.0) -> list[WatchEvent]:
    """Events until the condition holds; fails when nothing comes for so long."""
    events: list[WatchEvent] = []
    while not until(events):
        event = watch.get(seconds)
        assert event is not None, (
            f"nothing more came after {[(e.type, e.object.get('metadata', {}).get('name')) for e in events]}"
        )
        events.append(event)
    return events


def synced(watch: Watch) -> list[WatchEvent]:
    return collect(watch, lambda events: bool(events) and events[-1].type == "SYNCED")


def shown(events: list[WatchEvent]) -> list[tuple[str, str]]:
    return [(event.type, event.object["metadata"]["name"] if event.object else "") for event in events]


class Suite:
    """What every suite over a port asks of its implementation."""

    def eventually(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds; an implementation that does things at once need not wait."""
        assert holds()
