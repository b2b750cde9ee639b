"""The env plugin: tells each container which copy of its role it is."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.port import Cluster, Obj

VARIABLES = ("VK_TASK_INDEX", "VC_TASK_INDEX")


class Env:
    """Adds the pod's index in its role to all containers and init containers. Takes no arguments and makes no objects."""

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        pass

    def on_job_add(self, cluster: Cluster, job: Obj) -> None:
        """Nothing to make."""

    def on_pod_create(self, pod: Obj, job: Obj) -> None:
        """Add the variables; the index is the last part of the pod's name."""
        index = pod["metadata"]["name"].rsplit("-", 1)[-1]
        for field in ("containers", "initContainers"):
            for container in pod["spec"].get(field) or ():
                container.setdefault("env", []).extend({"name": name, "value": index} for name in VARIABLES)
