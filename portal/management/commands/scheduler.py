"""`manage.py scheduler`: the scheduler of a Kubernetes cluster; of several one leads, and the others wait."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.core.management import CommandError
from django.db import DatabaseError, connection

from cluster.kubernetes import KubernetesCluster
from portal import migrated, services
from portal.decisions import Sink
from portal.metrics import Measured, SchedulerMetrics
from portal.models import SchedulerConfiguration
from portal.parts import Run
from portal.process import PartCommand
from scheduler import conf
from scheduler.configmap import KEY, MapKey
from scheduler.framework.record import CycleRecord
from scheduler.loop import SchedulerLoop
from scheduler.served import Served

log = structlog.get_logger(__name__)

REST = 1.0
"""Seconds between two writes of an object's mere counts: what a job costs its API server goes by this, not by its pods."""


class Command(PartCommand):
    help = "Schedule the pods of a Kubernetes cluster (BASALT_CLUSTER_URL, the kubeconfig, or the service account of this pod)."
    part, port, switch = "scheduler", 8080, "BASALT_SCHEDULER"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--conf",
            type=Path,
            help="a volcano-scheduler.conf to schedule by (default: what the ConfigMap BASALT_SCHEDULER_CONFIGMAP says, and "
            "while there is none, the file in deploy/)",
        )
        parser.add_argument(
            "--no-decisions", action="store_true", help="keep decisions out of the database: this process needs none, then"
        )
        self._loop: SchedulerLoop | None = None
        self._metrics = SchedulerMetrics(cache=lambda: self._loop.cache if self._loop else None)

    def cluster(self, client: KubernetesCluster) -> Any:
        """The API server as it is, since the scheduler reads objects with their gaps; without gangs of other schedulers."""
        return Served(client, settings.BASALT_SCHEDULER_NAMES, asks_jobs=not settings.BASALT_CONTROLLER)

    def check_options(self, options: dict[str, Any]) -> None:
        """The configuration, and where else it may be."""
        file = _file(options)
        try:
            conf.load(file.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise CommandError(f"--conf {file}: {error}") from None
        try:
            _watched(options)
        except ValueError as error:
            raise CommandError(f"BASALT_SCHEDULER_CONFIGMAP: {error}, or off") from None

    def ready(self) -> str:
        """A first session has run."""
        return "" if self._loop is not None and self._loop.cycles else "the first session has not run yet"

    def runs(self, cluster: Any, options: dict[str, Any]) -> dict[str, Run]:
        """The loop, and what keeps its decisions."""
        sink = None if options["no_decisions"] else Sink()

        def record(cycle: CycleRecord) -> None:
            self._metrics(cycle)
            if sink is not None:
                sink(cycle)

        self._loop = SchedulerLoop(
            Measured(cluster, self._metrics, settings.BASALT_SCHEDULER_NAMES),
            _file(options),
            cluster.clock,
            record,
            scheduler_names=settings.BASALT_SCHEDULER_NAMES,
            told=sink.configured if sink is not None else None,
            rest=REST,
            watched=_watched(options),
            last=self._last(options),
        )
        return {"scheduler": self._loop.run, **({} if sink is None else {"decisions": migrated.after(sink.run)})}

    def _last(self, options: dict[str, Any]) -> str:
        """What the ConfigMap said when it was last in force, as the leader before told, or else here; empty for unknown."""
        watched = str(_watched(options) or "")
        if watched and not options["no_decisions"]:
            try:
                told = SchedulerConfiguration.objects.filter(source=watched).values_list("text", flat=True).first()
            except DatabaseError as error:
                log.warning("what was last in force cannot be read", error=str(error))
            else:
                if told is not None:
                    return told
            finally:
                connection.close()
        before = self._loop.conf.state if self._loop is not None else None
        return before.text if before is not None and watched and before.source == watched else ""


def _file(options: dict[str, Any]) -> Path:
    """The file that is read, or begun with."""
    return options["conf"] or settings.BASE_DIR / "deploy" / KEY


def _watched(options: dict[str, Any]) -> MapKey | None:
    """The ConfigMap that goes before that file; who names a file wants none. Raises ValueError."""
    if options["conf"] is not None or settings.BASALT_SCHEDULER_CONFIGMAP == "off":
        return None
    return MapKey.parse(settings.BASALT_SCHEDULER_CONFIGMAP, services.namespace())
