"""Where an extender is, and what it is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cluster.durations import parse_duration
from cluster.said import said

if TYPE_CHECKING:
    from scheduler.conf import Arguments

VERBS = (
    "onSessionOpen", "onSessionClose", "predicate", "prioritize", "preemptable", "reclaimable", "queueOverused",
    "jobEnqueueable", "jobEnqueued", "jobReady", "allocateFunc", "deallocateFunc",
)  # fmt: skip


class Config:
    """The plugin's arguments, read and checked. `verbs` are those that are given: what is asked → the end of the URL."""

    def __init__(self, arguments: Arguments) -> None:
        self.prefix = arguments.text("extender.urlPrefix", "").rstrip("/")
        self.verbs = {verb: text for verb in VERBS if (text := arguments.text(f"extender.{verb}Verb", ""))}
        if self.verbs and not self.prefix.startswith(("http://", "https://")):
            raise arguments.error(
                "extender.urlPrefix", said("%(prefix)r must begin with http:// or https://", prefix=self.prefix)
            )
        try:
            self.timeout = parse_duration(arguments.text("extender.httpTimeout", "1s"))
            if not 0 < self.timeout <= 60:
                raise ValueError(said("it must be more than nothing and at most a minute: every cycle waits so long"))
        except ValueError as error:
            raise arguments.error("extender.httpTimeout", str(error)) from None
        self.ignorable = arguments.boolean("extender.ignorable", False)
        found = arguments.value("extender.managedResources", [])
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise arguments.error("extender.managedResources", said("it must be a list of names of resources"))
        self.resources = frozenset(found)

    def url(self, verb: str) -> str:
        """Where to post."""
        return f"{self.prefix}/{self.verbs[verb]}"

    def concerns(self, spec: Mapping[str, Any]) -> bool:
        """Whether a pod asks for something that the extender looks after; without a list it looks after everything."""
        if not self.resources:
            return True
        containers: Iterable[Mapping[str, Any]] = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        named = (container.get("resources") or {} for container in containers)
        return any(not self.resources.isdisjoint(each.get(part) or ()) for each in named for part in ("requests", "limits"))
