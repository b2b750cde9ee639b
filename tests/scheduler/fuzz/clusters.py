"""Random clusters as objects: everything that the scheduler reads, in few words and small numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from cluster.port import Obj
from tests.scheduler.claims import make
from tests.scheduler.plugins.test_deviceshare import box
from tests.scheduler.plugins.test_numa_aware import topology
from tests.scheduler.topology.world import domain
from tests.scheduler.world import created, node, queue

DISK, CARD = "disk.example.com", "cards"
LINKS = (
    "\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\tX\tNV4\tSYS\tSYS\nGPU1\tNV4\tX\tSYS\tSYS\nGPU2\tSYS\tSYS\tX\tNV4\nGPU3\tSYS\tSYS\tNV4\tX\n"
)


def maybe(random: Random, part: float = 0.5) -> bool:
    return random.random() < part


def random_node(random: Random, name: str) -> list[Obj]:
    """A node, with what hangs on it: CPUs, devices, volumes."""
    cpu, gpu = random.randint(1, 8), random.choice([0, 0, 2, 4])
    more = {"gpu": gpu} if gpu else {}
    made = (
        box(name, cards=2, memory=1000, sharers=2)
        if maybe(random, 0.2)
        else node(name, cpu, pods=random.choice([2, 5, 110]), **more)
    )
    meta, marks = made["metadata"], made["metadata"].setdefault("annotations", {})
    meta["labels"] |= {"zone": random.choice("ab"), make.ZONE: random.choice("ab")}
    if maybe(random, 0.2):
        meta["labels"]["volcano.sh/nodegroup-name"] = random.choice(["g", "h"])
    if maybe(random, 0.15):
        meta["labels"]["volcano.sh/revocable-zone"] = "z"
    if gpu == 4 and maybe(random):
        marks["basalt.dev/gpu-topology"] = LINKS
    if gpu and maybe(random, 0.2):
        marks["volcano.sh/gpu-unhealthy-ids"] = "1"
    if maybe(random, 0.2):
        measured = {"cpu": random.randint(0, 100), "memory": 20, "time": "1970-01-12T13:46:30Z"}
        marks["basalt.dev/usage"] = json.dumps(measured)
    if maybe(random, 0.15):
        made["spec"]["taints"] = [{"key": "t", "value": "v", "effect": random.choice(["NoSchedule", "PreferNoSchedule"])}]
    if maybe(random, 0.05):
        made["spec"]["unschedulable"] = True
    found = [made]
    if maybe(random, 0.25):
        found.append(topology(name, random.choice(["single-numa-node", "best-effort", "restricted"]), free=f"0-{cpu - 1}"))
    if maybe(random, 0.3):
        found.append(make.slice_of(name, random.randint(1, 3)))
    if maybe(random, 0.3):
        found.append(make.csi_node(name, disk_example_com=random.randint(0, 2)))
    if maybe(random, 0.3):
        found.append(make.volume(f"pv-{name}", random.choice(["1Gi", "5Gi"]), "local", on=name))
    return found


def random_queues(random: Random) -> list[Obj]:
    """Queues in a tree of at most three levels; leaves are what jobs are mostly in."""
    found = [queue("root"), queue("default")]
    names = ["root"]
    for i in range(random.randint(1, 5)):
        spec: dict[str, Any] = {}
        if maybe(random, 0.4):
            spec["capability"] = _amounts(random, 3, 12)
        if maybe(random, 0.4):
            spec["deserved"] = _amounts(random, 1, 6)
        if maybe(random, 0.2):
            spec["guarantee"] = {"resource": {"cpu": str(random.randint(0, 2))}}
        if maybe(random, 0.6):
            spec["parent"] = random.choice(names)
        if maybe(random, 0.15):
            spec["reclaimable"] = False
        if maybe(random, 0.2):
            spec["priority"] = random.randint(0, 3)
        if maybe(random, 0.15):
            spec["affinity"] = {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["g"]}}
        found.append(queue(f"q{i}", random.randint(1, 4), **spec))
        if maybe(random, 0.15):
            found[-1]["metadata"]["annotations"] = {
                "volcano.sh/hierarchy": f"root/x/q{i}", "volcano.sh/hierarchy-weights": f"1/2/{random.randint(1, 3)}",
            }  # fmt: skip
        if maybe(random, 0.05):
            found[-1]["status"]["state"] = "Closed"
        names.append(f"q{i}")
    return found


def _amounts(random: Random, low: int, high: int) -> dict[str, str]:
    return {"cpu": str(random.randint(low, high))} | ({"nvidia.com/gpu": str(random.randint(0, 4))} if maybe(random) else {})


class Gangs:
    """Makes gangs, each with pods and claims of its own."""

    def __init__(self, random: Random, queues: list[str]) -> None:
        self.random, self.queues, self.number = random, queues, 0

    def make(self, nodes: list[str] = [], running: float = 0.0) -> list[Obj]:  # noqa: B006 - only read
        """A PodGroup with pods of one or two roles. With `nodes`, some of them run already."""
        random, self.number = self.random, self.number + 1
        name, space = f"g{self.number}", random.choice(["default", "default", "other"])
        if maybe(random, 0.1):
            return [self._pod(f"lone{self.number}", "", space, "w", 0, self._template())]
        roles = [(role, random.randint(1, 4), self._template()) for role in ("w", "x")[: random.choice([1, 1, 2])]]
        total = sum(count for _, count, _ in roles)
        spec: dict[str, Any] = {
            "minMember": random.choice([0, 1, total, total, random.randint(1, total), total + 1 if maybe(random, 0.1) else total])
        }
        spec["queue"] = random.choice([*self.queues, "default", *(["lost"] if maybe(random, 0.1) else [])])
        if maybe(random, 0.3):
            spec["minTaskMember"] = {role: random.randint(0, count) for role, count, _ in roles}
        if maybe(random, 0.6):
            spec["priorityClassName"] = random.choice(["high", "mid", "low", "absent"])
        if maybe(random, 0.4):
            spec["minResources"] = {"cpu": str(random.randint(0, 2) * spec["minMember"])}
        if maybe(random, 0.2):
            spec["networkTopology"] = {"mode": random.choice(["hard", "soft"]), "highestTierAllowed": random.randint(0, 2)}
        if maybe(random, 0.15):
            size = random.randint(1, 2)
            spec["subGroupPolicy"] = [{
                "name": "p", "matchLabelKeys": ["part"], "subGroupSize": size, "minSubGroups": random.randint(0, 2),
                **({"networkTopology": {"mode": "hard", "highestTierAllowed": 1}} if maybe(random) else {}),
            }]  # fmt: skip
        marks = {}
        if maybe(random, 0.2):
            marks["volcano.sh/preemptable"] = random.choice(["true", "false"])
        if maybe(random, 0.1):
            marks["volcano.sh/task-topology-affinity"] = "w,x"
        if maybe(random, 0.1):
            marks["sla-waiting-time"] = "1s"
        if maybe(random, 0.1):
            marks["volcano.sh/jdb-max-unavailable"] = "1"
        meta = {
            "name": name,
            "namespace": space,
            "uid": f"group-{name}",
            "creationTimestamp": created(self.number),
            "annotations": marks,
        }
        phase = random.choice(["Pending", "Inqueue"]) if not nodes else "Running"
        found: list[Obj] = [{
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": spec,
            "status": {"phase": phase},
        }]  # fmt: skip
        for role, count, template in roles:
            for i in range(count):
                found += self._with_claims(self._pod(f"{name}-{role}-{i}", name, space, role, i, template), space)
                asked = found[-1]["spec"]["containers"][0]["resources"]["requests"]
                if nodes and "nvidia.com/gpu" not in asked and maybe(random, running):
                    found[-1]["spec"]["nodeName"] = random.choice(nodes)
                    found[-1]["status"]["phase"] = "Running"
        return found

    def _template(self) -> dict[str, Any]:
        random = self.random
        asked: dict[str, str] = {"cpu": f"{random.randint(1, 6) * 500}m", "memory": "1Gi"}
        if maybe(random, 0.2):
            asked["nvidia.com/gpu"] = str(random.randint(1, 2))
        elif maybe(random, 0.2):
            asked |= {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": str(random.choice([300, 600]))}
        if maybe(random, 0.1):
            asked = {}
        container: Obj = {"name": "c", "resources": {"requests": asked, "limits": asked}}
        spec: dict[str, Any] = {"schedulerName": "volcano", "containers": [container]}
        if maybe(random, 0.1):
            container["ports"] = [{"hostPort": 80, "containerPort": 80}]
        if maybe(random, 0.15):
            spec["nodeSelector"] = {"zone": random.choice("ab")}
        if maybe(random, 0.2):
            spec["tolerations"] = [{"operator": "Exists"}]
        if maybe(random, 0.15):
            term = {
                "topologyKey": random.choice(["zone", "kubernetes.io/hostname"]),
                "labelSelector": {"matchLabels": {"app": "a"}},
            }
            kind = random.choice(["podAffinity", "podAntiAffinity", "podAntiAffinity"])
            spec["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        if maybe(random, 0.15):
            spec["topologySpreadConstraints"] = [{
                "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": random.choice(["DoNotSchedule", "ScheduleAnyway"]),
                "labelSelector": {"matchLabels": {"app": "a"}},
            }]  # fmt: skip
        if maybe(random, 0.05):
            spec["schedulingGates"] = [{"name": random.choice(["x", "scheduling.volcano.sh/queue-allocation-gate"])}]
        if maybe(random, 0.1):
            spec["preemptionPolicy"] = "Never"
        return {
            "spec": spec,
            "claim": random.choice([""] * 6 + ["fast", "local", "device", "shared"]),
            "app": random.choice("aab"),
        }

    def _pod(self, name: str, group: str, space: str, role: str, index: int, template: dict[str, Any]) -> Obj:
        random = self.random
        marks = {"volcano.sh/task-spec": role, "volcano.sh/task-index": str(index)}
        if group:
            marks["scheduling.k8s.io/group-name"] = group
        if maybe(random, 0.1):
            marks["volcano.sh/preemptable"] = random.choice(["true", "false"])
        if maybe(random, 0.1):
            marks["volcano.sh/revocable-zone"] = "*"
        meta = {
            "name": name, "namespace": space, "uid": f"pod-{name}", "creationTimestamp": created(self.number),
            "annotations": marks, "labels": {"app": template["app"], "part": str(index // 2)},
        }  # fmt: skip
        return {
            "apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**template["spec"], "_claim": template["claim"]},
            "status": {"phase": "Pending"},
        }  # fmt: skip

    def _with_claims(self, pod: Obj, space: str) -> Iterator[Obj]:
        of, name = pod["spec"].pop("_claim"), pod["metadata"]["name"]
        if of in ("fast", "local"):
            claim = make.claim(f"c-{name}", of=of)
            claim["metadata"]["namespace"] = space
            pod["spec"] |= make.mounting(f"c-{name}")
            yield claim
        elif of:
            claim = make.resource_claim("shared" if of == "shared" else f"r-{name}")
            claim["metadata"]["namespace"] = space
            pod["spec"] |= make.using(claim["metadata"]["name"])
            yield claim
        yield pod


def random_cluster(random: Random) -> tuple[list[list[Obj]], list[list[Obj]]]:
    """(parts that are there at first, gangs that come later); a part is of objects that hang together."""
    names = [f"n{i}" for i in range(random.randint(1, 5))]
    parts = [random_node(random, name) for name in names]
    queues = random_queues(random)
    parts += [[each] for each in queues]
    for name, value in (("high", 1000), ("mid", 100), ("low", -10)):
        policy = {"preemptionPolicy": "Never"} if maybe(random, 0.1) else {}
        parts.append(
            [
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                    **policy,
                }
            ]
        )
    parts += [[make.storage_class("fast")], [make.storage_class("local", "kubernetes.io/no-provisioner")], [make.device_class()]]
    if maybe(random, 0.4):
        half = (len(names) + 1) // 2
        parts += [
            [domain("s0", 1, names[:half])],
            [domain("s1", 1, names[half:])] if names[half:] else [],
            [domain("top", 2, domains=["s0", "s1"])],
        ]
    for space in ("default", "other"):
        parts.append([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space, "labels": {}}}])
    if maybe(random, 0.3):
        hard = {"requests.cpu": str(random.randint(1, 8)), "pods": "6"}
        parts.append([make.obj("v1", "ResourceQuota", "quota", "default", spec={"hard": hard}, status={"hard": hard})])
    if maybe(random, 0.3):
        spec = {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": random.randint(0, 3)}
        parts.append([make.obj("policy/v1", "PodDisruptionBudget", "pdb", "default", spec=spec)])
    gangs = Gangs(random, [each["metadata"]["name"] for each in queues[2:]])
    old = [gangs.make(names, 0.8) for _ in range(random.randint(0, 4))]
    return [part for part in parts if part] + old + [gangs.make() for _ in range(random.randint(1, 5))], [
        gangs.make() for _ in range(random.randint(0, 4))
    ]
