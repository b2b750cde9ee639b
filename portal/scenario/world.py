"""The world of one case: an embedded cluster in memory, the real controllers and scheduler, and simulated time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from cluster import objects
from cluster.clock import ManualClock
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import ApiError, NotFound
from cluster.kinds import HYPER_NODE, JOB, NODE, POD, QUEUE
from cluster.port import Obj
from jobs import keys
from jobs.controller import ControllerManager
from jobs.flows.parts import owning_flow
from jobs.groups import bare_group_name
from portal.scenario import objects as make
from portal.scenario.errors import Failed
from portal.scenario.history import WATCHED, History, SchedulersView, job_of
from portal.scenario.kubelet import InstantKubelet
from scheduler import conf
from scheduler.framework.explain import Verdict
from scheduler.framework.record import CycleRecord
from scheduler.loop import SchedulerLoop

MIDNIGHT = objects.parse_time("2030-01-01T00:00:00Z")
DAY = 86_400.0
MOST_CYCLES = 200
_ROUNDS = 1000


class World:
    """Everything that steps and expectations touch. `moment` is called after every cycle and every step."""

    def __init__(self, setup: dict[str, Any], *, seed: int = 0, sink: Callable[[CycleRecord], None] | None = None) -> None:
        configuration = conf.load(make.configuration(setup))
        self.clock = ManualClock(MIDNIGHT)
        self.cluster = EmbeddedCluster(clock=self.clock, random=Random(seed))  # noqa: S311 - uids, nothing secret
        self.history = History()
        self._watch = self.cluster.watch(WATCHED)
        self._seen = SchedulersView(self.cluster, self.history)
        self.controllers = ControllerManager(self.cluster, self.clock)
        self.kubelet = InstantKubelet(self.cluster, self.clock)
        self.scheduler = SchedulerLoop(self._seen, configuration, self.clock, self._take_record)  # type: ignore[arg-type]
        self._sink = sink
        self.record: CycleRecord | None = None
        self.verdicts: dict[str, Verdict] = {}
        self.answers: dict[str, ApiError | None] = {}
        self.refusal: ApiError | None = None
        self.node_words: dict[str, dict[str, Any]] = {}
        self.many: dict[str, int] = {}
        self.domains: dict[str, dict[str, Any]] = {}
        self.changed = False
        self._whole: set[str] = set()
        self._broken: set[str] = set()
        self.portal: Any = None
        self.happened: dict[int, str] = {}
        self.moment: Callable[[], None] = lambda: None
        self.settle()

    def close(self) -> None:
        """End the watches."""
        self.scheduler.close()
        self.controllers.close()
        self.kubelet.close()
        self._watch.close()

    # -- time ----------------------------------------------------------------------------------------------------------

    @property
    def cycles(self) -> int:
        """How many cycles there were."""
        return self._seen.cycle

    def settle(self) -> None:
        """Controllers and kubelet work until nothing is left to do."""
        for _ in range(_ROUNDS):
            if not self.controllers.settle() and not self.kubelet.settle():
                break
        else:
            raise Failed("the controllers and the kubelet do not come to rest")
        self.look()

    def cycle(self) -> bool:
        """One cycle, which takes a second; whether it changed any object."""
        self.look()
        self.changed = False
        self.settle()
        self._seen.cycle += 1
        self.scheduler.step()
        self.settle()
        self._count_gangs()
        self.clock.advance(1)
        self.moment()
        return self.changed

    def until_quiet(self) -> None:
        """Cycles until one changes nothing."""
        for _ in range(MOST_CYCLES):
            if not self.cycle():
                return
        raise Failed(f"not quiet after {MOST_CYCLES} cycles")

    def look(self) -> None:
        """Take in what changed."""
        for event in self._watch.drain():
            self.changed |= self.history.take(event)

    def restart_controllers(self) -> None:
        """A new controller process over the same objects."""
        self.controllers.close()
        self.controllers = ControllerManager(self.cluster, self.clock)

    def time_of_day(self) -> str:
        """The simulated time, for messages."""
        seconds = int(self.clock.now() - MIDNIGHT)
        return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"

    def _take_record(self, record: CycleRecord) -> None:
        self.record = record
        for key, verdict in record.verdicts.items():
            if verdict is None:
                self.verdicts.pop(key, None)
            else:
                self.verdicts[key] = verdict
        if self._sink is not None:
            self._sink(record)

    # -- writing -------------------------------------------------------------------------------------------------------

    def ask(self, name: str, write: Callable[[], object]) -> bool:
        """Do a write that may be refused, and note the answer under a name; it takes a second. Whether it was taken."""
        try:
            write()
        except ApiError as error:
            self.answers[name] = self.refusal = error
        else:
            self.answers[name] = None
        self.look()
        self.clock.advance(1)
        return self.answers[name] is None

    # -- reading -------------------------------------------------------------------------------------------------------

    def pods(self, job: str = "", *, task: str = "") -> list[Obj]:
        """Pods by name: of a job, of one of its tasks, or all."""
        found = (pod for pod in self.cluster.list(POD).items if not job or job_of(pod) == job)
        return [pod for pod in found if not task or objects.labels(pod).get(keys.TASK_SPEC) == task]

    def running(self, what: str = "") -> list[Obj]:
        """Running pods of `job`, of `job.task`, or all; by index."""
        job, _, task = what.partition(".")
        found = [pod for pod in self.pods(job, task=task) if phase_of(pod) == "Running"]
        return sorted(found, key=_place)

    def jobs_of_flow(self, name: str) -> list[str]:
        """The names of the jobs that a flow made and that are there."""
        made = [job for job in self.cluster.list(JOB).items if (owning_flow(job) or {}).get("name") == name]
        return [objects.name(job) for job in made]

    def pod(self, name: str) -> Obj:
        """A pod that a step names."""
        return self._found(POD, name)

    def job(self, name: str) -> Obj:
        """A job that a step names."""
        return self._found(JOB, name)

    def find(self, kind: Any, name: str) -> Obj | None:
        """An object, or None."""
        try:
            return self.cluster.get(kind, name, make.NAMESPACE if kind.namespaced else "")
        except NotFound:
            return None

    def _found(self, kind: Any, name: str) -> Obj:
        found = self.find(kind, name)
        if found is None:
            raise Failed(f"there is no {kind.kind} {name!r}")
        return found

    def job_of(self, pod: Obj) -> str:
        """The job of a pod."""
        return job_of(pod)

    def queue_of(self, pod: Obj) -> str:
        """The queue that a pod's job is in."""
        told = objects.annotations(pod)
        return told.get(keys.QUEUE_NAME) or told.get(keys.BARE_QUEUE_NAME) or "default"

    def gangs_evicted(self) -> tuple[set[str], set[str]]:
        """Jobs that evictions left with no running pod, and those that they left with fewer than their minimum."""
        return self._whole, self._broken - self._whole

    def _count_gangs(self) -> None:
        for job in {each.job for each in self.history.evictions if each.cycle == self.cycles}:
            left = len(self.running(job))
            if not left:
                self._whole.add(job)
            elif left < self._minimum(job):
                self._broken.add(job)

    def _minimum(self, job: str) -> int:
        found = self.find(JOB, job)
        return int(found["spec"].get("minAvailable") or 0) if found else 1

    def group_names(self, job: str) -> set[str]:
        """The PodGroups of a job or a plain pod that is there."""
        found = self.find(JOB, job)
        if found is not None:
            return {keys.group_name(found)}
        pod = self.find(POD, job)
        return {objects.annotations(pod).get(keys.GROUP_NAME) or bare_group_name(pod)} if pod else set()

    def verdict(self, job: str) -> Verdict | None:
        """Why a job or a plain pod waits."""
        for name in self.group_names(job):
            if found := self.verdicts.get(f"{make.NAMESPACE}/{name}"):
                return found
        return None

    def nodes_below(self, domain: str) -> Iterator[str]:
        """The names of the nodes in a hypernode."""
        words = self.domains.get(domain) or {}
        yield from words.get("nodes") or ()
        for inner in words.get("hypernodes") or ():
            yield from self.nodes_below(inner)

    def end_state(self) -> Any:
        """What two plays of the same case must agree on."""
        self.look()
        return {
            "pods": [(objects.name(pod), phase_of(pod), pod["spec"].get("nodeName", "")) for pod in self.pods()],
            "jobs": [(objects.name(job), job.get("status", {}).get("state", {})) for job in self.cluster.list(JOB).items],
            "queues": [(objects.name(queue), queue.get("status")) for queue in self.cluster.list(QUEUE).items],
            "nodes": [objects.name(node) for node in self.cluster.list(NODE).items],
            "hypernodes": [objects.name(node) for node in self.cluster.list(HYPER_NODE).items],
            "evicted": sorted((each.cycle, each.pod) for each in self.history.evictions),
        }


def phase_of(pod: Obj) -> str:
    """A pod's phase."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def _place(pod: Obj) -> tuple[str, int, str]:
    index = objects.labels(pod).get(keys.TASK_INDEX, "0")
    return job_of(pod), int(index) if index.isdecimal() else 0, objects.name(pod)
