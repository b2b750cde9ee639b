"""What a session is given of the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduler.calls import PostAll
from scheduler.estate import Estate
from scheduler.model.jobs import JobInfo
from scheduler.model.nodes import NodeTable
from scheduler.model.queues import QueueInfo
from scheduler.model.quotas import Quota
from scheduler.model.resources import Dimensions
from scheduler.model.roster import Roster
from scheduler.model.tasks import TaskClass
from scheduler.topology.places import Places


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The model as one cycle sees it. `jobs` and `queues` are those that take part.

    `roster` says who is in which queue, and what queues hold; `places` are the network domains, and where gangs are in
    them; `classes` are those of all known tasks; `estate` the volumes, devices and services of the cluster; `namespaces`
    the labels of each namespace, `quotas` its ResourceQuotas; `budgets` the PodDisruptionBudgets; `device_configs` the
    ConfigMaps about devices; `usage` the measured load of nodes; `post` asks other programs, None where nobody may be
    asked; `memo` lives as long as the model, for what plugins compute from static columns.
    """

    dims: Dimensions
    nodes: NodeTable
    jobs: dict[str, JobInfo]
    queues: dict[str, QueueInfo]
    roster: Roster
    places: Places
    classes: Collection[TaskClass] = ()
    estate: Estate = field(default_factory=Estate)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    quotas: Mapping[str, Sequence[Quota]] = field(default_factory=dict)
    budgets: Sequence[Mapping[str, Any]] = ()
    device_configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    usage: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    post: PostAll | None = None
    memo: dict[Any, Any] = field(default_factory=dict)
