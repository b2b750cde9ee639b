"""Kubernetes objects out of a scenario's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from cluster.embedded.machines import GPU, make_node, ready_condition
from cluster.kinds import CONFIG_MAP, CRON_JOB, HYPER_NODE, JOB, JOB_FLOW, JOB_TEMPLATE, POD, PRIORITY_CLASS, QUEUE
from cluster.port import Obj
from jobs import keys
from portal.scenario.errors import NotSupported
from scheduler.framework import registry

Words = Mapping[str, Any]

NAMESPACE = "default"
VGPU_REGISTER = "volcano.sh/node-vgpu-register"
VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
VGPU_PERCENT = "volcano.sh/vgpu-memory-percentage"
_ACTIONS = ("enqueue", "allocate", "backfill")
_TIERS = (("priority", "gang", "conformance"), ("overcommit", "drf", "predicates", "proportion", "nodeorder"))


def configuration(setup: Words) -> str:
    """The scheduler's configuration as a file. Raises NotSupported for an action or plugin that is not built."""
    actions, tiers = setup.get("actions") or _ACTIONS, setup.get("plugins") or _TIERS
    options = [[{"name": entry} if isinstance(entry, str) else dict(entry) for entry in tier] for tier in tiers]
    for name in actions:
        if name not in registry.actions:
            raise NotSupported(name)
    for option in (option for tier in options for option in tier):
        if option["name"] not in registry.plugins:
            raise NotSupported(option["name"])
    return yaml.safe_dump({"actions": ", ".join(actions), "tiers": [{"plugins": tier} for tier in options]})


# --- the cluster --------------------------------------------------------------------------------------------------


def nodes(words: Any) -> list[Words]:
    """The words of each node: a list is that already; equal ones are numbered from 0."""
    if not isinstance(words, Mapping):
        return list(words)
    each = {word: value for word, value in words.items() if word not in ("count", "prefix")}
    return [{"name": f"{words['prefix']}{index}", **each} for index in range(words["count"])]


def node(words: Words) -> Obj:
    """A ready node."""
    amounts = {"cpu": words.get("cpu", "0"), "memory": words.get("memory", "0"), "pods": str(words.get("pods", 110))}
    if words.get("gpu"):
        amounts[GPU] = str(words["gpu"])
    annotations = {}
    if words.get("gpus"):
        cards, shared = _cards(words)
        annotations[VGPU_REGISTER], amounts = cards, amounts | shared
    amounts |= words.get("extra") or {}
    return make_node(
        words["name"], capacity=amounts, allocatable=amounts, labels=dict(words.get("labels") or {}), annotations=annotations
    )


def _cards(words: Words) -> tuple[str, dict[str, str]]:
    """Cards for sharing, as a device plugin registers them: the annotation, and what the node then has of each resource."""
    if "deviceshare" not in registry.plugins:
        raise NotSupported("gpus")
    text, number, memory, cards = "", 0, 0, 0
    for group in words["gpus"]:
        sharers = group.get("sharers", 10)
        for _ in range(group["count"]):
            text += f"{words['name']}-card-{cards},{sharers},{group['memory_mib']},NVIDIA-simulated,true,hami-core:"
            number, memory, cards = number + sharers, memory + group["memory_mib"], cards + 1
    return text, {VGPU_NUMBER: str(number), VGPU_MEMORY: str(memory), VGPU_CORES: str(100 * cards)}


def ready(now: str) -> Obj:
    """The condition of a node that is there."""
    return {**ready_condition(), "lastTransitionTime": now, "lastHeartbeatTime": now}


def queue(words: Words) -> Obj:
    """A queue."""
    return {
        "apiVersion": QUEUE.api_version,
        "kind": QUEUE.kind,
        "metadata": {"name": words["name"]},
        "spec": {"weight": 1, **queue_spec(words)},
    }


def queue_spec(words: Words) -> Obj:
    """The fields of a queue's spec that are said."""
    spec = {word: words[word] for word in ("weight", "priority", "parent", "reclaimable") if word in words}
    for word in ("capability", "deserved", "guarantee"):
        if word in words:
            amounts = resources(words[word])
            spec[word] = {"resource": amounts} if word == "guarantee" else amounts
    return spec


def resources(amounts: Words) -> dict[str, str]:
    """Amounts by the resources' full names."""
    return {resource_name(word): str(value) for word, value in amounts.items()}


def resource_name(word: str) -> str:
    """The resource that a word means."""
    return GPU if word == "gpu" else word


def priority_class(name: str, value: int) -> Obj:
    """A priority class."""
    return {
        "apiVersion": PRIORITY_CLASS.api_version,
        "kind": PRIORITY_CLASS.kind,
        "metadata": {"name": name},
        "value": value,
    }


def hypernode(words: Words) -> Obj:
    """A network domain over nodes, or over other domains, by name."""
    members = [
        {"type": kind, "selector": {"exactMatch": {"name": name}}}
        for kind, word in (("Node", "nodes"), ("HyperNode", "hypernodes"))
        for name in words.get(word) or ()
    ]
    spec: Obj = {"tier": words["tier"], "members": members}
    if "tierName" in words:
        spec["tierName"] = words["tierName"]
    return {
        "apiVersion": HYPER_NODE.api_version,
        "kind": HYPER_NODE.kind,
        "metadata": {"name": words["name"]},
        "spec": spec,
    }


def config_map(words: Words) -> Obj:
    """A ConfigMap that somebody else made."""
    return {
        "apiVersion": "v1",
        "kind": CONFIG_MAP.kind,
        "metadata": {"name": words["name"], "namespace": NAMESPACE},
        "data": dict(words.get("data") or {}),
    }


# --- jobs and pods ------------------------------------------------------------------------------------------------


def job(name: str, words: Words, namespace: str = NAMESPACE) -> Obj:
    """A job's manifest."""
    spec: Obj = {"tasks": [_task(title, task) for title, task in words["tasks"].items()]}
    for word, field in (("queue", "queue"), ("min", "minAvailable"), ("priority", "priorityClassName"), ("maxRetry", "maxRetry")):
        if word in words:
            spec[field] = words[word]
    if "plugins" in words:
        spec["plugins"] = {plugin: list(arguments) for plugin, arguments in words["plugins"].items()}
    if "topology" in words:
        spec["networkTopology"] = topology(words["topology"])
    meta: Obj = {"name": name, "namespace": namespace}
    if "preemptable" in words:
        meta["annotations"] = {keys.PREEMPTABLE: "true" if words["preemptable"] else "false"}
    return {"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": meta, "spec": spec}


def template(words: Words) -> Obj:
    """A job template."""
    made = job(words["name"], words)
    return {**made, "apiVersion": JOB_TEMPLATE.api_version, "kind": JOB_TEMPLATE.kind}


def flow(words: Words) -> Obj:
    """A flow of jobs."""
    parts = [
        {"name": part["name"], **({"dependsOn": {"targets": list(part["dependsOn"])}} if part.get("dependsOn") else {})}
        for part in words["flows"]
    ]
    spec: Obj = {"flows": parts, **({"jobRetainPolicy": words["retain"]} if "retain" in words else {})}
    meta = {"name": words["name"], "namespace": NAMESPACE}
    return {"apiVersion": JOB_FLOW.api_version, "kind": JOB_FLOW.kind, "metadata": meta, "spec": spec}


def cron(words: Words) -> Obj:
    """A cron job."""
    made = job(words["name"], words["job"])
    notes = made["metadata"].pop("annotations", {})
    spec: Obj = {"schedule": words["schedule"], "jobTemplate": {"metadata": {"annotations": notes}, "spec": made["spec"]}}
    if "concurrency" in words:
        spec["concurrencyPolicy"] = words["concurrency"]
    return {"apiVersion": CRON_JOB.api_version, "kind": CRON_JOB.kind, "metadata": made["metadata"], "spec": spec}


def topology(words: Words) -> Obj:
    """A network topology's constraint."""
    fields = {"mode": "mode", "highestTier": "highestTierAllowed", "highestTierName": "highestTierName"}
    return {field: words[word] for word, field in fields.items() if word in words}


def _task(name: str, words: Words) -> Obj:
    spec = pod_spec([words])
    if "nodeSelector" in words:
        spec["nodeSelector"] = dict(words["nodeSelector"])
    task: Obj = {"name": name, "replicas": words["replicas"], "template": {"spec": spec}}
    if "min" in words:
        task["minAvailable"] = words["min"]
    if "dependsOn" in words:
        task["dependsOn"] = {"name": list(words["dependsOn"])}
    if "policies" in words:
        task["policies"] = [dict(policy) for policy in words["policies"]]
    if "partitions" in words:
        part = words["partitions"]
        policy: Obj = {"totalPartitions": part["total"], "partitionSize": part["size"]}
        if "topology" in part:
            policy["networkTopology"] = topology(part["topology"])
        task["partitionPolicy"] = policy
    return task


def pod(words: Words) -> Obj:
    """A plain pod of our scheduler."""
    meta: Obj = {"name": words["name"], "namespace": NAMESPACE}
    if "queue" in words:
        meta["annotations"] = {keys.BARE_QUEUE_NAME: words["queue"]}
    spec = pod_spec(words["containers"])
    if "nodeSelector" in words:
        spec["nodeSelector"] = dict(words["nodeSelector"])
    return {"apiVersion": "v1", "kind": POD.kind, "metadata": meta, "spec": {"schedulerName": "volcano", **spec}}


def pod_spec(containers: Sequence[Words]) -> Obj:
    """Containers that ask for what is said; they run until a step ends them."""
    named = [{"name": "main" if index == 0 else f"side-{index}", "image": "busybox"} for index in range(len(containers))]
    for container, words in zip(named, containers, strict=True):
        if asked := _asked(words):
            container["resources"] = {"requests": asked, "limits": dict(asked)}  # type: ignore[assignment]
    return {"restartPolicy": "Never", "containers": named}


def _asked(words: Words) -> dict[str, str]:
    asked = {word: str(words[word]) for word in ("cpu", "memory") if word in words}
    if "gpu" in words:
        asked[GPU] = str(words["gpu"])
    if "vgpu" in words:
        if "deviceshare" not in registry.plugins:
            raise NotSupported("vgpu")
        names = {"number": VGPU_NUMBER, "memory_mib": VGPU_MEMORY, "memory_percent": VGPU_PERCENT, "cores": VGPU_CORES}
        asked |= {names[word]: str(value) for word, value in {"number": 1, **words["vgpu"]}.items()}
    return asked
