"""Job plugins: what a job may name under `spec.plugins` to have its pods prepared for a framework.

A plugin is a small class with two hooks. `KNOWN` holds every name that a manifest may use; `REGISTRY` holds the ones that
do something.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from cluster.port import Cluster, Obj
from jobs.plugins.env import Env

KNOWN = ("env", "svc", "ssh", "mpi", "pytorch", "tensorflow", "ray", "hcclrank")
"""Names that a manifest may use."""

NEEDS: dict[str, tuple[str, ...]] = {"tensorflow": ("svc",), "pytorch": ("svc",), "ray": ("svc",), "mpi": ("svc", "ssh")}
"""Plugins that others cannot do without; admission adds them."""


class Plugin(Protocol):
    """One plugin, made for one job with the arguments that its manifest gives (`--flag=value` each)."""

    def on_job_add(self, cluster: Cluster, job: Obj) -> None:
        """Make the objects that the job's pods need. Called again and again while the job is being prepared: idempotent."""
        ...

    def on_pod_create(self, pod: Obj, job: Obj) -> None:
        """Change a pod before it is created."""
        ...


REGISTRY: dict[str, Callable[[Sequence[str]], Plugin]] = {"env": Env}


def plugins_of(job: Obj) -> list[Plugin]:
    """The job's plugins in the order in which they must run, whatever order its manifest has."""
    wanted = job["spec"].get("plugins") or {}
    return [REGISTRY[name](wanted[name] or ()) for name in KNOWN if name in wanted and name in REGISTRY]
