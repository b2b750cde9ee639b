"""What every job plugin is: a small class with four hooks, made for one job with the arguments of its manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from cluster import objects
from cluster.errors import FieldError
from cluster.kinds import Kind
from cluster.pointers import pointer
from cluster.port import Obj
from jobs.plugins.flags import Flag, parse
from jobs.plugins.maker import Maker


class Plugin:
    """A job plugin. Hooks that a plugin does not have do nothing.

    One instance serves one pass over one job: what is equal for all its pods is worked out once.
    """

    name: ClassVar[str]
    flags: ClassVar[tuple[Flag, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()
    """Plugins without which this one is of no use; admission adds them."""
    is_recorded: ClassVar[bool] = True
    """Whether the job's status lists it among `controlledResources`."""

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        self.arguments = parse(self.flags, arguments)

    def on_job_add(self, maker: Maker, job: Obj) -> None:
        """Make what the job's pods need, before the first of them. Called again and again while the job waits: idempotent."""

    def on_job_update(self, maker: Maker, job: Obj) -> None:
        """Bring that up to date with a job that was scaled."""

    def on_job_delete(self, maker: Maker, job: Obj) -> None:
        """Take away what a job that has ended needs no more. What is deleted takes its objects with it by itself."""
        for kind, name in self.makes(objects.name(job)):
            maker.remove(kind, name)

    def on_pod_create(self, pod: Obj, job: Obj) -> None:
        """Change a pod before it is created."""

    def makes(self, job: str) -> Iterator[tuple[Kind, str]]:
        """The objects that the plugin makes for a job of this name: kind and name."""
        return iter(())

    def check(self, spec: dict[str, Any], name: str) -> Iterator[FieldError]:
        """What is wrong with the plugin in a job of this spec and name, beyond its arguments. Values may be missing."""
        return iter(())

    @classmethod
    def at(cls, *steps: str | int) -> str:
        """The pointer to the plugin in a manifest, or to one of its arguments."""
        return pointer("spec", "plugins", cls.name, *steps)


def tasks_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The roles of a spec as admission sees it: those without a name are told of elsewhere."""
    return [task for task in spec.get("tasks") or () if task.get("name")]
