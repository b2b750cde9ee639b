"""Thirty constructed causes of waiting: a small cluster each, in which the job `x` waits for exactly one reason."""

from __future__ import annotations

from typing import Any

from cluster.port import Obj
from tests.scheduler.world import gang, group, node, pod, queue

GPU = "nvidia.com/gpu"
ACTIONS = "enqueue, allocate, backfill"
PLAIN = ("priority", "gang", "conformance", "drf", "predicates", "proportion", "nodeorder")


def conf(*plugins: str, actions: str = ACTIONS, arguments: dict[str, dict[str, Any]] | None = None) -> str:
    """A configuration of one tier."""
    lines = [f'actions: "{actions}"', "tiers:", "- plugins:"]
    for name in plugins or PLAIN:
        lines.append(f"  - name: {name}")
        found = (arguments or {}).get(name)
        if found:
            lines.append("    arguments:")
            lines += [f"      {key}: {value}" for key, value in found.items()]
    return "\n".join(lines) + "\n"


def busy(name: str, count: int, place: str, **more: Any) -> list[Obj]:
    """A gang that runs on a node, not to be evicted."""
    objs = gang(name, count, at=1, **more)
    objs[0]["status"]["phase"] = "Running"
    for each in objs[1:]:
        each["spec"]["nodeName"] = place
        each["status"]["phase"] = "Running"
        each["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"
    return objs


def x(replicas: int = 1, **more: Any) -> list[Obj]:
    """The job that waits."""
    return gang("x", replicas, at=100, **more)


def closed(name: str) -> Obj:
    return {**queue(name), "status": {"state": "Closed"}}


def tainted(name: str, **more: Any) -> Obj:
    found = node(name, **more)
    found["spec"]["taints"] = [{"key": "maintenance", "value": "yes", "effect": "NoSchedule"}]
    return found


def marked(name: str, *, ready: str = "True", cordoned: bool = False, **more: Any) -> Obj:
    found = node(name, **more)
    found["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    found["spec"]["unschedulable"] = cordoned
    return found


def gated() -> list[Obj]:
    objs = x(cpu=1)
    for each in objs[1:]:
        each["spec"]["schedulingGates"] = [{"name": "wait"}]
    return objs


def lacking() -> list[Obj]:
    """Admitted long ago, and only one of its three pods was made."""
    gang_of_three = group("x", 3, at=100)
    gang_of_three["status"]["phase"] = "Inqueue"
    return [gang_of_three, pod("x", "w", 0, {"cpu": 1})]


def leaving(name: str, place: str, **requests: Any) -> list[Obj]:
    objs = busy(name, 1, place, **requests)
    objs[1]["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    return objs


def with_claim(volume: str) -> Any:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": volume}}]}


def near(key: str) -> Any:
    term = {"labelSelector": {"matchLabels": {"app": "none"}}, "topologyKey": key}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def domain(name: str, tier: int, *nodes: str) -> Obj:
    members = [{"type": "Node", "selector": {"exactMatch": {"name": each}}} for each in nodes]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name, "uid": name},
        "spec": {"tier": tier, "members": members},
    }  # fmt: skip


def hard(tier: int) -> list[Obj]:
    objs = x(4, cpu=4)
    objs[0]["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": tier}
    return objs


def quota(**amounts: str) -> Obj:
    return {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default", "uid": "q"},
        "spec": {"hard": amounts}, "status": {"hard": amounts, "used": {}},
    }  # fmt: skip


TREE = conf("priority", "gang", "conformance", "predicates", "capacity", arguments=None)
HIERARCHY = TREE.replace("- name: capacity", "- name: capacity\n    enableHierarchy: true")
QUOTAS = conf(*PLAIN, "resourcequota")
OVERCOMMIT = conf("priority", "gang", "conformance", "drf", "predicates", "nodeorder", "overcommit")
EVICTING = conf(actions="enqueue, allocate, preempt, reclaim, backfill")
NETWORK = conf(*PLAIN, "network-topology-aware")

PORT = {"containers": [{"name": "c", "ports": [{"hostPort": 80, "containerPort": 80}]}]}
"""A pod that wants port 80 of its node."""

Cause = tuple[str, str, list[Any], dict[str, Any]]
CAUSES: list[Cause] = []


def cause(title: str, text: str, parts: list[Any], **expected: Any) -> None:
    """Add one: its title, the configuration, the objects, and what the verdict says exactly."""
    CAUSES.append((title, text, parts, expected))


P = conf()
cause("one pod asks more GPUs than are free on any node", P, [node("n0", gpu=8), busy("b", 1, "n0", gpu=6), x(gpu=4)],
      code="nodes.insufficient", stage="node_fit", resource=GPU, asked=4000, free=2000, short=2000, nodes=1,
      rejected={f"insufficient:{GPU}": 1})  # fmt: skip
cause("too little CPU", P, [node("n0", cpu=4), busy("b", 1, "n0", cpu=3), x(cpu=2)],
      code="nodes.insufficient", resource="cpu", asked=2000, free=1000, short=1000, rejected={"insufficient:cpu": 1})  # fmt: skip
cause("too little memory", P, [node("n0", memory="8Gi"), busy("b", 1, "n0", memory="6Gi"), x(memory="4Gi")],
      code="nodes.insufficient", resource="memory", asked=4 << 30, free=2 << 30, short=2 << 30,
      rejected={"insufficient:memory": 1})  # fmt: skip
cause("a gang of which only a part has room", P, [node("n0", gpu=8), node("n1", gpu=8), busy("b", 1, "n1", gpu=8), x(3, gpu=8)],
      code="gang.incomplete", stage="gang", needed=3, placeable=1, resource=GPU, asked=8000, free=0, short=8000,
      rejected={f"insufficient:{GPU}": 2})  # fmt: skip
cause("a pod that is larger than every node", P, [node("n0", gpu=8), x(gpu=16)],
      code="pod.too_large", resource=GPU, asked=16000, limit=8000, short=8000)  # fmt: skip
cause("no node at all", P, [x(cpu=1)], code="nodes.none", stage="node_fit")
cause("no node has the label", P, [node("n0"), node("n1"), x(cpu=1, pod_spec={"nodeSelector": {"zone": "z9"}})],
      code="nodes.refused", stage="node_fit", nodes=2, rejected={"selector": 2})  # fmt: skip
cause("every node is tainted", P, [tainted("n0"), tainted("n1"), x(cpu=1)], code="nodes.refused", nodes=2, rejected={"taint": 2})
cause(
    "every node is cordoned", P, [marked("n0", cordoned=True), x(cpu=1)], code="nodes.refused", nodes=1, rejected={"cordoned": 1}
)
cause("no node is ready", P, [marked("n0", ready="False"), x(cpu=1)], code="nodes.refused", nodes=1, rejected={"not_ready": 1})
cause("the node is full of pods", P, [node("n0", pods=1), busy("b", 1, "n0", cpu=1), x(cpu=1)],
      code="nodes.refused", nodes=1, rejected={"pod_count": 1})  # fmt: skip
cause("its host port is taken", P,
      [node("n0"), busy("b", 1, "n0", cpu=1, pod_spec=PORT),
       x(cpu=1, pod_spec=PORT)],
      code="nodes.refused", nodes=1, rejected={"ports": 1})  # fmt: skip
cause("it wants to be near a pod that is nowhere", P, [node("n0"), x(cpu=1, pod_spec=near("kubernetes.io/hostname"))],
      code="nodes.refused", nodes=1, rejected={"pod_affinity": 1})  # fmt: skip
cause("it waits for pods that leave", P, [node("n0", gpu=8), leaving("b", "n0", gpu=8), x(gpu=8)],
      code="nodes.releasing", stage="node_fit", needed=1, placeable=1)  # fmt: skip
cause(
    "its queue does not exist",
    P,
    [node("n0"), x(cpu=1, queue="nowhere")],
    code="queue.missing",
    stage="admission",
    queue="nowhere",
)
cause(
    "its queue is closed",
    P,
    [node("n0"), closed("shut"), x(cpu=1, queue="shut")],
    code="queue.closed",
    stage="queue_limit",
    queue="shut",
)
cause("its queue may not have more", P,
      [node("n0", gpu=8), queue("small", capability={GPU: "2"}), x(gpu=4, queue="small", minResources={GPU: "4"})],
      code="queue.capability", stage="admission", queue="small", resource=GPU,
      asked=4000, free=2000, limit=2000, short=2000)  # fmt: skip
cause("its queue's limit is used up", P,
      [node("n0", gpu=8), queue("small", capability={GPU: "4"}), busy("b", 1, "n0", gpu=3, queue="small"),
       x(gpu=2, queue="small", minResources={GPU: "2"})],
      code="queue.capability", queue="small", resource=GPU, asked=2000, free=1000, limit=4000, short=1000)  # fmt: skip
cause("its queue has more than it deserves", P,
      [node("n0", cpu=8), queue("a"), queue("b"), busy("mine", 1, "n0", cpu=4, queue="a"),
       busy("theirs", 1, "n0", cpu=3, queue="b"), x(cpu=1, queue="a"), gang("y", 1, cpu=1, queue="b", at=50)],
      code="queue.deserved", stage="queue_limit", queue="a", resource="cpu",
      asked=1000, free=0, limit=4000, short=1000)  # fmt: skip
cause("the cluster admitted as much as it may", OVERCOMMIT,
      [node("n0", gpu=8), busy("b", 1, "n0", gpu=8, minResources={GPU: "8"}), x(gpu=4, minResources={GPU: "4"})],
      code="overcommit", stage="admission", resource=GPU, asked=4000, free=1600, limit=9600, short=2400)  # fmt: skip
cause("its pods do not exist", P, [node("n0"), lacking()],
      code="gang.too_few_pods", stage="gang", needed=3, placeable=1)  # fmt: skip
cause("a scheduling gate holds it", P, [node("n0"), gated()], code="pod.gated", stage="gang", needed=1)
cause("its namespace's quota is full", QUOTAS, [node("n0"), quota(**{"requests.cpu": "1"}), x(cpu=2, minResources={"cpu": "2"})],
      code="resource_quota", stage="admission", resource="cpu", asked=2000)  # fmt: skip
cause(
    "its volume claim does not exist",
    P,
    [node("n0"), x(cpu=1, pod_spec=with_claim("lost"))],
    code="volume.missing",
    resource="lost",
)
cause("no network domain is large enough", NETWORK,
      [node("n0", cpu=8), node("n1", cpu=8), domain("s0", 1, "n0"), domain("s1", 1, "n1"), hard(1)],
      code="topology.no_domain", stage="topology", tier=1, needed=4, placeable=2)  # fmt: skip
cause("nobody may be evicted for it", EVICTING, [node("n0", cpu=4), busy("b", 1, "n0", cpu=4), x(cpu=2)],
      code="preemption.no_victims", stage="preemption", resource="cpu", asked=2000, free=0, short=2000, candidates=1,
      spared={"not_preemptable": 1})  # fmt: skip
cause("its queue's parent is missing", HIERARCHY, [node("n0"), queue("leaf", parent="gone"), x(cpu=1, queue="leaf")],
      code="queue.parent_missing", stage="queue_limit", queue="leaf")  # fmt: skip
cause("its queue holds other queues", HIERARCHY,
      [node("n0"), queue("top", parent="root"), queue("leaf", parent="top"), x(cpu=1, queue="top", minResources={"cpu": "1"})],
      code="queue.not_leaf", queue="top")  # fmt: skip
cause("two things at once: the wrong label here, no GPUs there", P,
      [node("n0", labels={"zone": "a"}), node("n1", gpu=2, labels={"zone": "b"}), node("n2", gpu=8),
       x(gpu=4, pod_spec={"nodeSelector": {"zone": "b"}})],
      code="nodes.insufficient", resource=GPU, asked=4000, free=2000, short=2000, nodes=3,
      rejected={"selector": 2, f"insufficient:{GPU}": 1})  # fmt: skip
cause("a gang that asks nothing of GPUs but CPUs on scattered nodes", P,
      [node("n0", cpu=3), node("n1", cpu=3), x(3, cpu=2)],
      code="gang.incomplete", stage="gang", needed=3, placeable=2, resource="cpu", asked=2000, free=1000, short=1000)  # fmt: skip
