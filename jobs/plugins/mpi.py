"""The mpi plugin: the master knows its workers, and every pod declares the port by which it is reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cluster import objects
from cluster.errors import FieldError
from cluster.port import Obj
from cluster.said import said
from jobs.plugins.base import Plugin, tasks_of
from jobs.plugins.containers import add_env, containers, open_port
from jobs.plugins.flags import Flag
from jobs.plugins.hosts import domains, joined_length, named
from jobs.plugins.limits import too_long
from jobs.roles import role_of

HOSTS = "MPI_HOST"


class Mpi(Plugin):
    """`MPI_HOST` on the master, for `mpiexec --host ${MPI_HOST}`; ssh and svc do the rest."""

    name = "mpi"
    flags = (Flag("master", "master"), Flag("worker", "worker"), Flag("port", 22, is_port=True))
    needs = ("ssh", "svc")
    _hosts: str | None = None

    def on_pod_create(self, pod: Obj, job: Obj) -> None:
        """The port everywhere, the hosts on the master; a master without workers is left as it is."""
        is_master = role_of(pod) == self.arguments.text("master")
        if is_master and self._workers(job) is None:
            return
        for container in containers(pod, init=True):
            open_port(container, "mpijob-port", self.arguments.whole("port"))
            if is_master:
                add_env(container, (HOSTS, self._workers(job) or ""))

    def check(self, spec: dict[str, Any], name: str) -> Iterator[FieldError]:
        """A master there must be, and the workers' names must fit into one variable."""
        master, tasks = self.arguments.text("master"), tasks_of(spec)
        if tasks and named({"tasks": tasks}, master) is None:
            yield FieldError(
                self.at(), said("needs a task named %(master)r, or --master=<the task that is>", master=master), "not_found"
            )
        workers = named({"tasks": tasks}, self.arguments.text("worker"))
        if workers and (why := too_long(HOSTS, joined_length(name, workers), said("use fewer workers"))):
            yield FieldError(self.at(), why, "range")

    def _workers(self, job: Obj) -> str | None:
        """The workers' hosts, joined once for all pods; None when there is no such role."""
        if self._hosts is None:
            task = named(job["spec"], self.arguments.text("worker"))
            if task is None:
                return None
            self._hosts = ",".join(domains(objects.name(job), task))
        return self._hosts
