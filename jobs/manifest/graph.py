"""`dependsOn` between tasks: names that exist, each once, and no circle."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Any

from cluster.said import said
from cluster.validation import Faults, few


def check_dependencies(tasks: list[dict[str, Any]], faults: Faults) -> None:
    """All tasks of a job together."""
    positions = {task.get("name") or f"default{index}": index for index, task in enumerate(tasks)}
    graph: dict[str, list[str]] = {}
    for role, index in positions.items():
        names = (tasks[index].get("dependsOn") or {}).get("name") or []
        seen: set[str] = set()
        for at, name in enumerate(names):
            where = f"/spec/tasks/{index}/dependsOn/name/{at}"
            if name not in positions:
                faults.add(
                    where, said("there is no task %(name)r: name one of %(names)s", name=name, names=few(positions)), "not_found"
                )
            elif name in seen:
                faults.add(where, said("%(name)r is listed twice", name=name), "duplicate")
            seen.add(name)
        graph[role] = [name for name in names if name in positions]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = list(reversed(error.args[1]))
        where = f"/spec/tasks/{positions[circle[0]]}/dependsOn"
        faults.add(where, said("makes a circle: %(names)s; leave one of them out", names=" needs ".join(circle[:10])), "cycle")
