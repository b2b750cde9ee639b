"""`manage.py controller`: the controllers of a Kubernetes cluster; of several one leads, and the others wait.

With BASALT_CONTROLLERS=workers it is the dispatcher of the Celery workers' work instead, whose lead is in Redis.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

from jobs.controller import ControllerManager
from jobs.controller.base import REST
from jobs.controller.crew import Dispatcher
from portal import metrics, services
from portal.metrics import ControllerMetrics, Making
from portal.parts import Run
from portal.process import PartCommand


class Command(PartCommand):
    help = "Run the controllers of jobs, queues, flows and cron jobs over a Kubernetes cluster."
    part, port, switch = "controller", 8081, "BASALT_CONTROLLER"

    _manager: ControllerManager | None = None
    _working: ControllerManager | Dispatcher | None = None
    _metrics: ControllerMetrics | None = None
    _making: Making | None = None

    def handle(self, **options: Any) -> None:
        if settings.BASALT_CONTROLLERS == "workers":
            options["no_leader_election"] = True
        super().handle(**options)

    def check_options(self, options: dict[str, Any]) -> None:
        """Redis, where workers need it."""
        if settings.BASALT_CONTROLLERS == "workers":
            services.redis()

    def ready(self) -> str:
        """The local copy is complete, or Redis and the cluster answer the dispatcher: whether it leads is its own affair."""
        if settings.BASALT_CONTROLLERS == "workers":
            return self._working.trouble if isinstance(self._working, Dispatcher) else ""
        if self._manager is not None and self._manager.informer.synced:
            return ""
        return "the local copy is not complete yet"

    def runs(self, cluster: Any, options: dict[str, Any]) -> dict[str, Run]:
        """The controllers in threads, or the dispatcher for workers."""
        if self._metrics is None:
            self._metrics = ControllerMetrics(
                lambda: self._working.informer if self._working else None,
                due=lambda: self._working.due() if self._working else None,
            )
        if settings.BASALT_CONTROLLERS == "workers":
            from portal.celery import dispatcher

            self._working = working = dispatcher(cluster)
            metrics.watch_lead(working.leads.is_set)
            return {"dispatcher": working.run}
        if self._making is None:
            self._making = Making(cluster, lambda: self._manager.informer if self._manager else None)
        self._working = self._manager = ControllerManager(self._making, cluster.clock, rest=REST)
        return {"controllers": self._manager.run}
