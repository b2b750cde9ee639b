"""Job plugins: what a job may name under `spec.plugins` to have its pods prepared for a framework.

Each is a small class in a file of its own; `REGISTRY` lists them in the order in which they run.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cluster.port import Obj
from jobs.plugins.base import Plugin
from jobs.plugins.env import Env
from jobs.plugins.hcclrank import HcclRank
from jobs.plugins.maker import Maker, Taken
from jobs.plugins.mpi import Mpi
from jobs.plugins.pytorch import Pytorch
from jobs.plugins.ray import Ray
from jobs.plugins.ssh import Ssh
from jobs.plugins.svc import Svc
from jobs.plugins.tensorflow import Tensorflow

_ALL: tuple[type[Plugin], ...] = (Env, Svc, Ssh, Mpi, Tensorflow, Pytorch, Ray, HcclRank)

REGISTRY: Mapping[str, type[Plugin]] = MappingProxyType({plugin.name: plugin for plugin in _ALL})

KNOWN = tuple(REGISTRY)
"""Names that a manifest may use."""

NEEDS: Mapping[str, tuple[str, ...]] = MappingProxyType({plugin.name: plugin.needs for plugin in _ALL if plugin.needs})
"""Plugins that others cannot do without; admission adds them."""


def plugins_of(job: Obj) -> list[Plugin]:
    """The job's plugins in the order in which they run, whatever order its manifest has. They serve one pass."""
    wanted = job["spec"].get("plugins") or {}
    return [plugin(wanted[name] or ()) for name, plugin in REGISTRY.items() if name in wanted]


__all__ = ["KNOWN", "NEEDS", "REGISTRY", "Maker", "Plugin", "Ssh", "Taken", "plugins_of"]
