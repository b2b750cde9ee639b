"""The env plugin: tells each container which copy of its role it is."""

from __future__ import annotations

from cluster import objects
from cluster.port import Obj
from jobs.keys import index_of
from jobs.plugins.base import Plugin
from jobs.plugins.containers import add_env, containers

VARIABLES = ("VK_TASK_INDEX", "VC_TASK_INDEX")


class Env(Plugin):
    """Adds the pod's index in its role to all containers and init containers."""

    name = "env"

    def on_pod_create(self, pod: Obj, job: Obj) -> None:
        """Add the variables."""
        number = str(index_of(objects.name(pod)))
        for container in containers(pod, init=True):
            add_env(container, *((name, number) for name in VARIABLES))
