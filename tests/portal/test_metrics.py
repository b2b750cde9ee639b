"""Metrics: Volcano's names, types and labels to the letter, ours beside them, and series that go when their object goes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from cluster.admission import Admission
from cluster.clock import ManualClock
from cluster.embedded.store import EmbeddedCluster
from cluster.informer import Informer
from cluster.kinds import JOB, JOB_FLOW, NODE, POD, POD_GROUP, PRIORITY_CLASS, QUEUE
from cluster.port import Binding
from portal.metrics import ControllerMetrics, Making, Measured, SchedulerMetrics
from portal.metrics.base import MOST_OBJECTS, buckets
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.record import CycleRecord, Served
from scheduler.loop import SchedulerLoop
from tests.scheduler.plugins.test_deviceshare import asks, box
from tests.scheduler.world import gang, group, node, queue

JOB_LABELS = {"job_name", "queue", "job_namespace"}
CARD, HELD = {"devID", "NodeName"}, {"devID", "NodeName", "podName"}
AMOUNTS = ("allocated", "request", "deserved", "inqueue", "capacity", "real_capacity")
PHASES = ("inqueue", "pending", "running", "unknown", "completed")

SCHEDULER: dict[str, tuple[str, set[str]]] = {
    "e2e_scheduling_latency_milliseconds": ("histogram", set()),
    "open_session_duration_milliseconds": ("histogram", set()),
    "e2e_job_scheduling_latency_milliseconds": ("histogram", set()),
    "e2e_job_scheduling_duration": ("gauge", JOB_LABELS),
    "e2e_job_scheduling_start_time": ("gauge", JOB_LABELS),
    "e2e_job_scheduling_last_time": ("gauge", JOB_LABELS),
    "plugin_scheduling_latency_milliseconds": ("histogram", {"plugin", "OnSession"}),
    "action_scheduling_latency_milliseconds": ("histogram", {"action"}),
    "task_scheduling_latency_milliseconds": ("histogram", {"stage"}),
    "scheduling_stage_duration_milliseconds": ("histogram", {"stage"}),
    "schedule_attempts_total": ("counter", {"result"}),
    "pod_preemption_victims": ("gauge", set()),
    "total_preemption_attempts": ("gauge", set()),
    "eviction_transactions_total": ("counter", {"action"}),
    "unschedule_task_count": ("gauge", {"job_id"}),
    "unschedule_job_count": ("gauge", set()),
    "job_retry_counts": ("gauge", {"job_id"}),
    **{f"queue_{amount}_{of}": ("gauge", {"queue_name"}) for amount in AMOUNTS for of in ("milli_cpu", "memory_bytes")},
    **{f"queue_{amount}_scalar_resources": ("gauge", {"queue_name", "resource"}) for amount in AMOUNTS},
    **{f"queue_{name}": ("gauge", {"queue_name"}) for name in ("share", "weight", "overused")},
    "job_share": ("gauge", {"job_ns", "job_id"}),
    **{f"vgpu_device_{of}": ("gauge", CARD) for of in ("shared_number", "allocated_memory", "allocated_cores", "memory_limit")},
    **{f"vgpu_device_{of}_allocation_for_a_certain_pod": ("gauge", HELD) for of in ("memory", "core")},
}
"""Of Volcano's scheduler, without the prefix. Counters whose names do not end in _total are gauges here: the client insists."""

CONTROLLER: dict[str, tuple[str, set[str]]] = {
    **{f"job_{phase}_phase_count": ("gauge", {"job_name", "queue_name"}) for phase in ("completed", "failed")},
    **{f"jobflow_{phase}_phase_count": ("gauge", {"jobflow_namespace"}) for phase in ("succeed", "failed")},
    **{f"queue_pod_group_{phase}_count": ("gauge", {"queue_name"}) for phase in PHASES},
    "controller_job_to_pod_creation_latency_milliseconds": ("histogram", set()),
}
NOT_HERE = {"goroutines", "namespace_share", "namespace_weight", "namespace_weighted_share"}
"""Volcano declares these and exposes or writes none of them."""

OURS_SCHEDULER = {
    "pods_bound_total", "pods_evicted_total", "pods_considered_total", "binds_failed_total", "objects_set_aside", "podgroups",
}  # fmt: skip


def exposed(registry: CollectorRegistry) -> dict[str, tuple[str, set[str]]]:
    """Every family by name, with its type and the labels that its series carry."""
    found = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        labels: set[str] = set().union(*(sample.labels.keys() for sample in family.samples)) - {"le"}
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found[name] = (family.type, labels)
    return found


class Scheduled:
    """A scheduler over a store, measured."""

    def __init__(self, *parts: Any) -> None:
        self.clock = ManualClock(1_900_000_000.0)
        self.cluster = EmbeddedCluster(clock=self.clock, admission=Admission())
        self.registry = CollectorRegistry()
        conf = Path(__file__).parents[2] / "deploy" / "volcano-scheduler.conf"
        self.metrics = SchedulerMetrics(self.registry, lambda: self.loop.cache, self.clock, every=0)
        measured = Measured(self.cluster, self.metrics, ("volcano",))
        self.loop = SchedulerLoop(measured, conf, self.clock, self.metrics)
        self.add(queue("default", capability={"cpu": "100", "memory": "1Ti", "nvidia.com/gpu": "8"}), *parts)

    def add(self, *parts: Any) -> None:
        kinds = {"Node": NODE, "Queue": QUEUE, "PodGroup": POD_GROUP, "Pod": POD, "PriorityClass": PRIORITY_CLASS}
        for obj in (each for part in parts for each in (part if isinstance(part, list) else [part])):
            kind = kinds[obj["kind"]]
            made = self.cluster.create(kind, obj)
            if obj.get("status") and kind.has_status:
                self.cluster.patch_status(kind, made["metadata"]["name"], made["metadata"].get("namespace", ""), obj["status"])

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"volcano_{name}", labels)


@pytest.fixture(scope="module")
def busy() -> Scheduled:
    """A gang that runs, one that waits, a pod on a shared card, and one that had to give way."""
    world = Scheduled(node("n0", cpu=4, gpu=4), box("cards", cards=2))
    world.add(gang("low", 2, least=1, cpu=2, gpu=1))
    world.loop.step()
    world.clock.advance(2)
    world.add({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10})
    world.add(gang("high", 1, cpu=2, gpu=1, priorityClassName="high", pod_spec={"priority": 10, "priorityClassName": "high"}))
    world.add(
        gang("large", 3, cpu=3, gpu=2, minResources={"cpu": "1", "nvidia.com/gpu": "1"}),
        group("part", 1),
        asks({"number": 1, "memory": 1000, "cores": 20}, name="part"),
    )
    for _ in range(3):
        world.loop.step()
        world.clock.advance(1)
    return world


def test_every_metric_of_volcanos_scheduler_is_told_with_its_type_and_labels(busy: Scheduled) -> None:
    told = {name.removeprefix("volcano_"): what for name, what in exposed(busy.registry).items() if name.startswith("volcano_")}
    assert told.keys() == SCHEDULER.keys()
    assert told == SCHEDULER
    ours = {name.removeprefix("basalt_") for name in exposed(busy.registry) if name.startswith("basalt_")}
    assert ours == OURS_SCHEDULER


def test_names_are_the_references(shared_dir: Path) -> None:
    text = (shared_dir / "reference" / "volcano.md").read_text()
    section = text[text.index("\n## 10. Metrics") : text.index("\n## 11.")]
    listed = set()
    for row in re.findall(r"^\| (.*?) \|", section, re.MULTILINE)[1:]:
        for name in re.split(r", (?![^{]*\})", row):
            listed |= set(_spelled(name))
    assert listed == SCHEDULER.keys() | CONTROLLER.keys() | NOT_HERE


def _spelled(name: str) -> list[str]:
    """`a_{b,c}_d` written out; `{same}` stands for the amounts of queues."""
    match = re.search(r"\{(.*?)\}", name)
    if match is None:
        return [name]
    words = AMOUNTS if match[1] == "same" else match[1].split(",")
    return [name[: match.start()] + word + name[match.end() :] for word in words]


def test_a_cycle_is_measured(busy: Scheduled) -> None:
    value = busy.value
    assert value("e2e_scheduling_latency_milliseconds_count") == 4
    assert value("open_session_duration_milliseconds_count") == 4
    assert value("plugin_scheduling_latency_milliseconds_count", plugin="gang", OnSession="OnSessionOpen") == 4
    assert value("plugin_scheduling_latency_milliseconds_count", plugin="drf", OnSession="OnSessionClose") == 4
    assert value("action_scheduling_latency_milliseconds_count", action="allocate") == 4
    assert value("scheduling_stage_duration_milliseconds_count", stage="Predicate") == 4
    assert value("scheduling_stage_duration_milliseconds_count", stage="Scoring") == 4


def test_pods_are_followed_from_creation_to_bind(busy: Scheduled) -> None:
    def count(of: str, stage: str) -> float | None:
        return busy.value(f"{of}_count", stage=stage)

    stages = {
        stage: count("task_scheduling_latency_milliseconds", stage) for stage in ("Watched", "Assumed", "PreBound", "Bound")
    }
    bound = busy.registry.get_sample_value("basalt_pods_bound_total")
    assert stages == {"Watched": 7, "Assumed": bound, "PreBound": bound, "Bound": bound}
    binds = count("scheduling_stage_duration_milliseconds", "Bind")
    assert binds == count("scheduling_stage_duration_milliseconds", "PreBind")
    assert binds


def test_queues_jobs_and_cards_are_as_the_scheduler_sees_them(busy: Scheduled) -> None:
    value = busy.value
    assert value("queue_weight", queue_name="default") == 1
    assert value("queue_capacity_milli_cpu", queue_name="default") == 100_000
    assert value("queue_capacity_scalar_resources", queue_name="default", resource="nvidia.com/gpu") == 8000
    assert value("unschedule_task_count", job_id="large") == 3
    assert value("job_retry_counts", job_id="large") == 1
    card = {"devID": "cards-1", "NodeName": "cards"}
    assert value("vgpu_device_memory_limit", **card) == 24576
    assert [value(f"vgpu_device_{of}", **card) for of in ("shared_number", "allocated_memory", "allocated_cores")] in (
        [1, 1000, 20],
        [0, 0, 0],
    )
    pod = {"NodeName": "cards", "podName": "part-w-0"}
    held = [value("vgpu_device_core_allocation_for_a_certain_pod", devID=f"cards-{i}", **pod) for i in (0, 1)]
    assert sorted(held, key=str) == [20, None]
    assert value("job_share", job_ns="default", job_id="large") is None
    assert value("eviction_transactions_total", action="preempt") == 1
    assert value("pod_preemption_victims") == 1
    assert value("schedule_attempts_total", result="scheduled") >= 2


def test_times_of_a_job_are_its_creation_and_the_last_pods_node() -> None:
    world = Scheduled(node("n0", cpu=8))
    world.clock.advance(5)
    world.add(gang("a", 2, least=1, cpu=1))
    world.clock.advance(3)
    world.loop.step()
    labels = {"job_name": "a", "queue": "default", "job_namespace": "default"}
    start, last = (world.value(f"e2e_job_scheduling_{of}_time", **labels) for of in ("start", "last"))
    assert start == 1_900_000_005
    assert last == pytest.approx(1_900_000_008, abs=1)
    assert world.value("e2e_job_scheduling_duration", **labels) == pytest.approx(3000, abs=1000)
    assert world.value("job_share", job_ns="default", job_id="a") == 0.25


def test_series_go_with_their_objects() -> None:
    world = Scheduled(node("n0", cpu=8), box("cards", cards=1), queue("team", capability={"cpu": "5"}))
    world.add(
        gang("a", 1, cpu=1),
        gang("waits", 1, cpu=99, queue="team"),
        group("part", 1),
        asks({"number": 1, "memory": 5}, name="part"),
    )
    world.loop.step()
    before = generate_latest(world.registry).decode()
    assert all(name in before for name in ('job_name="a"', 'job_id="waits"', 'devID="cards-0"', 'queue_name="team"', "part-w-0"))
    for name in ("a", "waits", "part"):
        world.cluster.delete(POD_GROUP, name, "default")
        world.cluster.delete(POD, f"{name}-w-0", "default", grace_seconds=0)
    world.cluster.delete(QUEUE, "team")
    world.cluster.delete(NODE, "cards")
    world.loop.step()
    after = generate_latest(world.registry).decode()
    for name in ('"a"', '"waits"', "cards-0", '"team"', "part-w-0"):
        assert name not in after, name


def test_no_more_series_than_the_bound_however_many_jobs_there_are() -> None:
    registry = CollectorRegistry()
    metrics = SchedulerMetrics(registry)
    served = {f"ns/{number}": Served("q", 0.0) for number in range(MOST_OBJECTS + 50)}
    metrics(CycleRecord(1, 10.0, served=served))
    text = generate_latest(registry).decode()
    assert text.count("volcano_e2e_job_scheduling_last_time{") == MOST_OBJECTS
    assert 'job_name="0"' not in text, "the oldest are left out"


def test_gangs_of_one_name_in_two_namespaces_make_one_series() -> None:
    registry = CollectorRegistry()
    waits = Verdict(next(iter(Stage)), next(iter(Code)), needed=5, placeable=2)
    SchedulerMetrics(registry)(CycleRecord(1, 0.0, verdicts={"a/gang": waits, "b/gang": waits}))
    assert registry.get_sample_value("volcano_unschedule_task_count", {"job_id": "gang"}) == 6
    assert generate_latest(registry).decode().count("volcano_unschedule_task_count{") == 1


def test_a_bind_that_is_refused_is_counted() -> None:
    world = Scheduled(node("n0"))
    world.metrics.prepared([], 0)
    measured = Measured(world.cluster, world.metrics, ("volcano",))
    measured.bind_many([Binding("default", "nobody", "uid", "n0", {})])
    assert world.registry.get_sample_value("basalt_binds_failed_total") == 1


def test_every_metric_of_volcanos_controllers_is_told(cluster: EmbeddedCluster) -> None:
    registry = CollectorRegistry()
    informer = Informer(cluster, (JOB, POD_GROUP, QUEUE, JOB_FLOW), {})
    informer.start()
    making = Making(cluster, lambda: informer, registry)
    ControllerMetrics(lambda: informer, registry)

    def seen(kind: Any, name: str, **what: Any) -> dict[str, Any]:
        meta = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1", "creationTimestamp": "2030-01-01T00:00:00Z"}
        obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **what}
        informer.observe(kind, obj)
        return obj

    def steps(*phases: str) -> dict[str, Any]:
        return {"state": {"phase": phases[-1]}, "conditions": [{"status": phase} for phase in phases]}

    seen(QUEUE, "team")
    seen(POD_GROUP, "g", spec={"queue": "team"}, status={"phase": "Running"})
    job = seen(
        JOB,
        "twice",
        spec={"queue": "team"},
        status=steps("Pending", "Running", "Completed", "Restarting", "Running", "Completed"),
    )
    seen(JOB, "broken", status=steps("Pending", "Failed"))
    for name, phase in (("f", "Succeed"), ("g", "Succeed"), ("h", "Failed")):
        seen(JOB_FLOW, name, status={"state": {"phase": phase}})
    owner = {"apiVersion": JOB.api_version, "kind": "Job", "name": "twice", "uid": "twice", "controller": True}
    meta = {"name": "p", "namespace": "ns", "ownerReferences": [owner]}
    pod = {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    (made,) = making.create_many(POD, [pod])
    assert made.error is None
    told = {name.removeprefix("volcano_"): what for name, what in exposed(registry).items() if name.startswith("volcano_")}
    assert told == CONTROLLER
    value = registry.get_sample_value
    assert value("volcano_job_completed_phase_count", {"job_name": "ns/twice", "queue_name": "team"}) == 2
    assert value("volcano_job_failed_phase_count", {"job_name": "ns/broken", "queue_name": "default"}) == 1
    assert value("volcano_jobflow_succeed_phase_count", {"jobflow_namespace": "ns"}) == 2
    assert value("volcano_queue_pod_group_running_count", {"queue_name": "team"}) == 1
    assert value("volcano_queue_pod_group_pending_count", {"queue_name": "team"}) == 0
    assert value("volcano_controller_job_to_pod_creation_latency_milliseconds_count") == 1
    informer.forget(JOB, job)
    assert value("volcano_job_completed_phase_count", {"job_name": "ns/twice", "queue_name": "team"}) is None
    informer.stop()


def test_buckets_go_from_least_to_most_by_one_factor() -> None:
    bounds = buckets(1, 5000, 20)
    assert (len(bounds), bounds[0]) == (20, 1)
    assert bounds[-1] == pytest.approx(5000)
    assert bounds[10] / bounds[9] == pytest.approx(bounds[2] / bounds[1])
