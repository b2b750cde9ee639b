"""Random configurations: any plugins in any tiers, with any arguments and switches, and any actions in any order."""

from __future__ import annotations

from random import Random
from typing import Any

from scheduler.conf import SWITCHES

ACTIONS = ("enqueue", "allocate", "backfill", "preempt", "reclaim", "shuffle", "gangpreempt", "gangreclaim")

ARGUMENTS: dict[str, dict[str, list[Any]]] = {
    "binpack": {"binpack.weight": [0, 1, 10], "binpack.cpu": [0, 5], "binpack.resources": ["nvidia.com/gpu, pods"]},
    "capacity": {"ancestorReclaimLevel": [0, 1, 2], "capacity.DynamicResourceAllocationEnable": [False]},
    "cdp": {},
    "conformance": {},
    "deviceshare": {
        "deviceshare.VGPUEnable": [True],
        "deviceshare.SchedulePolicy": ["binpack", "spread"],
        "deviceshare.ScheduleWeight": [1, 10],
        "deviceshare.NodeLockEnable": [True],
        "deviceshare.GPUExclusiveRules": [[{"app": "a"}]],
    },
    "drf": {},
    "extender": {"extender.urlPrefix": ["http://127.0.0.1:1"], "extender.ignorable": [True, False]},
    "gang": {},
    "gputopology": {"gputopology.gang": [0, 1], "gputopology.weight": [0, 3]},
    "network-topology-aware": {
        "weight": [0, 5],
        "network-topology-aware.normal-pod.enable": [False],
        "hypernode.gradient.evict.max-hypernodes": [1],
    },
    "nodegroup": {"strict": [False], "enablePreferredOrder": [True]},
    "nodeorder": {"leastrequested.weight": [0, 5], "mostrequested.weight": [2], "podaffinity.weight": [3]},
    "numa-aware": {"weight": [10]},
    "overcommit": {"overcommit-factor": [1.0, 5.0]},
    "pdb": {},
    "predicates": {"predicate.CacheEnable": [True], "predicate.PodAffinityEnable": [False]},
    "priority": {},
    "proportion": {},
    "rescheduling": {
        "interval": ["1s"],
        "strategies": [[{"name": "lowNodeUtilization", "params": {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 40}}}]],
    },
    "resource-strategy-fit": {
        "resourceStrategyFitWeight": [5],
        "resources": [{"cpu": {"type": "MostAllocated", "weight": 2}}],
        "sra": [{"enable": True, "resources": "nvidia.com/gpu", "weight": 3}],
        "proportional": [{"enable": True, "resources": "nvidia.com/gpu", "nvidia.com/gpu.cpu": 1}],
    },
    "resourcequota": {},
    "sla": {"sla-waiting-time": ["2s", "1h"]},
    "task-topology": {"task-topology.weight": [5]},
    "tdm": {"tdm.revocable-zone.z": ["00:00-23:59", "10:00-10:01"], "tdm.evict.period": ["1s"]},
    "usage": {"cpu.weight": [3], "thresholds": [{"cpu": 80}]},
}
ACTION_ARGUMENTS: dict[str, dict[str, list[Any]]] = {
    "gangpreempt": {"maxDomains": [1], "allowWholeBundle": [False]},
    "gangreclaim": {"maxDomains": [1], "allowWholeBundle": [False]},
    "preempt": {"enableTopologyAwarePreemption": [True]},
}
USUAL = ("gang", "predicates", "priority")


def random_conf(random: Random) -> dict[str, Any]:
    """A configuration as data. Half of them are near to what people use."""
    likely = random.choice([0.25, 0.6])
    names = [name for name in ARGUMENTS if random.random() < (0.85 if name in USUAL else likely)]
    random.shuffle(names)
    if "proportion" in names and "capacity" in names:
        names.remove(random.choice(["proportion", "capacity"]))
    tiers: list[list[dict[str, Any]]] = [[] for _ in range(random.randint(1, 3))]
    for name in names:
        random.choice(tiers).append(_option(random, name))
    for tier in tiers:
        for option in tier:
            if option["name"] == "drf" and any(other["name"] == "proportion" for other in tier):
                option.pop("enableHierarchy", None)  # both would order queues, which is refused
    chosen = [name for name in ACTIONS if random.random() < (0.9 if name in ("enqueue", "allocate") else 0.6)]
    if random.random() < 0.3:
        random.shuffle(chosen)
    given = [
        {"name": name, "arguments": _arguments(random, ACTION_ARGUMENTS[name])} for name in chosen if name in ACTION_ARGUMENTS
    ]
    return {"actions": ", ".join(chosen or ["allocate"]), "tiers": [{"plugins": tier} for tier in tiers], "configurations": given}


def _option(random: Random, name: str) -> dict[str, Any]:
    option: dict[str, Any] = {"name": name}
    if name in ("capacity", "drf", "nodegroup") and random.random() < 0.4:
        option["enableHierarchy"] = True
    for switch in SWITCHES:
        if switch != "enableHierarchy" and random.random() < 0.02:
            option[switch] = not SWITCHES[switch]
    if found := _arguments(random, ARGUMENTS[name]):
        option["arguments"] = found
    return option


def _arguments(random: Random, known: dict[str, list[Any]]) -> dict[str, Any]:
    return {key: random.choice(values) for key, values in known.items() if random.random() < 0.5}
