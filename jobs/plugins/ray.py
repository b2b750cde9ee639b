"""The ray plugin: a Ray cluster of one head and its workers, reached from outside by a Service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cluster import objects
from cluster.errors import ApiError, FieldError
from cluster.kinds import SERVICE, Kind
from cluster.port import Obj
from cluster.said import said
from jobs import keys
from jobs.plugins.base import Plugin, tasks_of
from jobs.plugins.containers import containers, open_port
from jobs.plugins.flags import Flag
from jobs.plugins.hosts import domain, named
from jobs.plugins.limits import is_service_name, no_service_name
from jobs.plugins.maker import Maker
from jobs.roles import role_of

_PORTS = {"gcs": "port", "dashboard": "dashboardPort", "client-server": "clientPort"}
"""Names of the head's ports, and the flags that number them."""


class Ray(Plugin):
    """Replaces the commands of head and workers by `ray start`, and makes a Service for the head."""

    name = "ray"
    flags = (
        Flag("head", "head"),
        Flag("headContainer", "head"),
        Flag("worker", "worker"),
        Flag("workerContainer", "worker"),
        Flag("port", 6379, is_port=True),
        Flag("dashboardPort", 8265, is_port=True),
        Flag("clientPort", 10001, is_port=True),
    )
    needs = ("svc",)

    def on_job_add(self, maker: Maker, job: Obj) -> None:
        """The head's Service."""
        selector = {
            keys.JOB_NAME: objects.name(job),
            keys.JOB_NAMESPACE: objects.namespace(job),
            keys.TASK_SPEC: self.arguments.text("head"),
        }
        ports = [
            {"name": name, "port": self.arguments.whole(flag), "targetPort": name, "protocol": "TCP"}
            for name, flag in _PORTS.items()
        ]
        maker.offer(SERVICE, service_name(objects.name(job)), {"spec": {"selector": selector, "ports": ports}})

    def makes(self, job: str) -> Iterator[tuple[Kind, str]]:
        """The Service."""
        yield SERVICE, service_name(job)

    def on_pod_create(self, pod: Obj, job: Obj) -> None:
        """The command of the container that the plugin starts; its arguments stay."""
        given = self.arguments
        head = named(job["spec"], given.text("head"))
        if head is None:
            raise ApiError(said("there is no task %(text)r, which is to be the head", text=given.text("head")))
        for container in containers(pod, init=False):
            if (role_of(pod), container.get("name")) == (given.text("head"), given.text("headContainer")):
                for name, flag in _PORTS.items():
                    open_port(container, name, given.whole(flag))
                container["command"] = _shell(
                    f"ray start --head --block --dashboard-host=0.0.0.0 --port={given.whole('port')} "
                    f"--dashboard-port={given.whole('dashboardPort')} --ray-client-server-port={given.whole('clientPort')}"
                )
            if (role_of(pod), container.get("name")) == (given.text("worker"), given.text("workerContainer")):
                address = domain(objects.name(job), head, 0)
                container["command"] = _shell(f"ray start --block --address={address}:{given.whole('port')}")

    def check(self, spec: dict[str, Any], name: str) -> Iterator[FieldError]:
        """A head there must be, ports of its own for each purpose, and a name for the Service."""
        head, tasks = self.arguments.text("head"), tasks_of(spec)
        if tasks and named({"tasks": tasks}, head) is None:
            yield FieldError(self.at(), said("needs a task named %(head)r, or --head=<the task that is>", head=head), "not_found")
        if len({self.arguments.whole(flag) for flag in _PORTS.values()}) < len(_PORTS):
            flags = ", ".join(f"--{flag}" for flag in _PORTS.values())
            yield FieldError(self.at(), said("%(flags)s must be different ports", flags=flags), "duplicate")
        if is_service_name(name) and not is_service_name(service_name(name)):
            yield FieldError("/metadata/name", no_service_name(service_name(name)), "format")


def service_name(job: str) -> str:
    """The Service of a job's head."""
    return f"{job}-head-svc"


def _shell(command: str) -> list[str]:
    return ["sh", "-c", command]
