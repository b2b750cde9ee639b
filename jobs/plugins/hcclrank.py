"""The hcclrank plugin: which rank a pod has for Huawei's collective communication library, as an annotation."""

from __future__ import annotations

from cluster import objects
from cluster.port import Obj
from jobs.keys import index_of
from jobs.plugins.base import Plugin
from jobs.plugins.containers import containers
from jobs.plugins.flags import Flag
from jobs.plugins.hosts import named
from jobs.roles import role_of

RANK_INDEX = "hccl/rankIndex"


class HcclRank(Plugin):
    """Annotates masters and workers with their rank, unless they have one; it runs after pytorch, whose `RANK` counts."""

    name = "hcclrank"
    flags = (Flag("master", "master"), Flag("worker", "worker"))
    is_recorded = False

    def on_pod_create(self, pod: Obj, job: Obj) -> None:
        """The first `RANK` of any container, else masters first and workers behind them."""
        annotations = pod["metadata"].setdefault("annotations", {})
        rank = annotations.get(RANK_INDEX) or _rank_in_env(pod) or self._rank(pod, job)
        if rank:
            annotations[RANK_INDEX] = rank

    def _rank(self, pod: Obj, job: Obj) -> str:
        if role_of(pod) == self.arguments.text("master"):
            return str(index_of(objects.name(pod)))
        if role_of(pod) != self.arguments.text("worker"):
            return ""
        master = named(job["spec"], self.arguments.text("master")) or {}
        return str(int(master.get("replicas") or 0) + index_of(objects.name(pod)))


def _rank_in_env(pod: Obj) -> str:
    """The value of the first `RANK`; empty when there is none, or it comes from elsewhere."""
    for container in containers(pod, init=False):
        for variable in container.get("env") or ():
            if variable.get("name") == "RANK":
                return str(variable.get("value") or "")
    return ""
