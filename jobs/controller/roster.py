"""All controllers over one local copy, and what a change means to them: shared by threads and by workers in other processes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cluster import objects
from cluster.clock import Clock
from cluster.discovery import HyperNodeController
from cluster.errors import ApiError, Conflict
from cluster.informer import Change, Informer
from cluster.kinds import Kind
from cluster.port import Cluster
from cluster.rests import Rests
from jobs.controller.bare import BarePodController
from jobs.controller.base import Context, Controller, Refusals
from jobs.controller.events import EventRecorder
from jobs.controller.job import JobController
from jobs.cron.controller import CronController
from jobs.flows.controller import FlowController
from jobs.flows.templates import TemplateController
from jobs.schedulers import scheduler_names
from queues.controller import QueueController

Key = tuple[str, str]
"""A controller's name and a key of its own."""

_CLASSES = (
    JobController, BarePodController, QueueController, FlowController, TemplateController, CronController, HyperNodeController,
)  # fmt: skip

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Roster:
    """Controllers by name, and the local copy that they read."""

    informer: Informer
    controllers: dict[str, Controller]
    _by_kind: dict[Kind, list[Controller]]

    @classmethod
    def over(
        cls,
        cluster: Cluster,
        clock: Clock,
        *,
        schedulers: Sequence[str] | None = None,
        refusals: Refusals | None = None,
        rests: Rests | None = None,
    ) -> Roster:
        """Controllers of jobs, plain pods, queues, flows and cron jobs; the copy is not fed yet."""
        kinds = dict.fromkeys(kind for each in _CLASSES for kind in each.kinds)
        indexes = {index: function for each in _CLASSES for index, function in getattr(each, "indexes", {}).items()}
        informer = Informer(cluster, tuple(kinds), indexes)
        context = Context(cluster, informer, clock, refusals or Refusals(), rests or Rests())
        events = EventRecorder(cluster, clock)
        controllers: tuple[Controller, ...] = (
            JobController(context, events),
            BarePodController(context, events, schedulers or scheduler_names()),
            QueueController(cluster, informer, clock, context.rests),
            FlowController(context, events),
            TemplateController(context),
            CronController(context, events),
            HyperNodeController(cluster, informer),
        )
        by_kind = {kind: [each for each in controllers if kind in each.kinds] for kind in kinds}
        return cls(informer, {controller.name: controller for controller in controllers}, by_kind)

    def concerned(self, changes: Iterable[Change]) -> Iterator[Key]:
        """The keys that changes concern; an object that makes no sense to one controller does not stop the others."""
        for change in changes:
            for controller in self._by_kind.get(change.kind, ()):
                name = controller.name
                try:
                    yield from [(name, key) for key in controller.keys(change)]
                except Exception:
                    log.exception("%s %s means nothing to controller %s", change.kind, objects.key(change.object), name)

    def tell_failure(self, key: Key, error: Exception, failures: int) -> None:
        """Say in the log and on the object that a pass failed, for the `failures`-th time in a row."""
        name, item = key
        if not isinstance(error, ApiError):
            log.error("%s %s could not be reconciled", name, item, exc_info=error)
        elif not isinstance(error, Conflict):
            log.info("%s %s is tried again: %s", name, item, error)
        try:
            self.controllers[name].failed(item, error, failures)
        except Exception:
            log.exception("the failure of %s %s could not be told", name, item)

    def all(self) -> Iterator[Key]:
        """The keys of everything that is there."""
        for kind in self.informer.kinds:
            yield from self.concerned(Change(kind, None, obj) for obj in self.informer.all(kind))
