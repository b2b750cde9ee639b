"""The tree of queues, as admission and the controller look at it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from cluster.port import Obj

ROOT = "root"
DEFAULT = "default"
BUILT_IN = (ROOT, DEFAULT)


def parent_of(queue: Obj) -> str:
    """The parent's name; a queue that names none hangs below root, and root below nothing."""
    if queue["metadata"]["name"] == ROOT:
        return ""
    return (queue.get("spec") or {}).get("parent") or ROOT


class Tree:
    """Queues by name and by parent, at one moment."""

    def __init__(self, queues: Iterable[Obj]) -> None:
        self.queues = {queue["metadata"]["name"]: queue for queue in queues}
        self._children: defaultdict[str, list[str]] = defaultdict(list)
        for name, queue in self.queues.items():
            self._children[parent_of(queue)].append(name)

    def children(self, name: str) -> list[Obj]:
        """The queues right below."""
        return [self.queues[child] for child in sorted(self._children.get(name, ()))]

    def ancestors(self, name: str) -> Iterator[Obj]:
        """From the parent upwards, root left out; a circle or a missing parent ends it."""
        seen = {name}
        above = parent_of(self.queues[name]) if name in self.queues else ROOT
        while above and above != ROOT and above not in seen and above in self.queues:
            seen.add(above)
            yield self.queues[above]
            above = parent_of(self.queues[above])

    def descendants(self, name: str) -> Iterator[Obj]:
        """All queues below, nearest first."""
        waiting, seen = [name], {name}
        while waiting:
            for child in self.children(waiting.pop(0)):
                below = child["metadata"]["name"]
                if below not in seen:
                    seen.add(below)
                    waiting.append(below)
                    yield child
