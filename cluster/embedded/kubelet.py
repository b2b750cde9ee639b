"""The simulated kubelet: it starts, ends and stops the pods of every node, in the cluster's own time.

What happens to a pod is its fate (`fates.py`). Due times come from the objects' own stamps, so after a restart of this
process everybody goes on where they were: what should have happened meanwhile happens at once.
"""

from __future__ import annotations

import heapq
import logging
import threading
from dataclasses import dataclass

from cluster.clock import Clock
from cluster.embedded import devices, podlogs, podstatus
from cluster.embedded.fates import Fate, Timing, fate_of, restart_policy
from cluster.embedded.hosts import Hosts
from cluster.embedded.nodes import NodeKeeper
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import ApiError, Conflict, NotFound, Unavailable
from cluster.events import event_about
from cluster.kinds import EVENT, NODE, POD
from cluster.objects import condition, is_deleting, name, namespace, now_stamp, parse_time, uid
from cluster.port import Obj, Outcome, StatusWrite, WatchEvent

logger = logging.getLogger(__name__)

_LONGEST_WAIT = 1.0
_BACK_OFF, _LONGEST_BACK_OFF, _HEALTHY_AFTER = 10.0, 300.0, 600.0


@dataclass(slots=True)
class _Tracked:
    """A pod that has a node, where it stands and when it goes on."""

    pod: Obj
    fate: Fate
    stage: str = ""
    restarts: int = 0
    started: float = 0.0
    turn: int = 0  # number of the heap entry that counts; older ones are void


@dataclass(frozen=True, slots=True)
class _Planned:
    """A status to be written for what happened at an instant."""

    tracked: _Tracked
    at: float
    status: Obj


class Kubelet:
    """The kubelets of all nodes of one embedded cluster; all methods but `run` belong to one thread.

    `run` serves live; tests and simulations call `step` or `settle` after they moved the clock.
    """

    def __init__(
        self, cluster: EmbeddedCluster, clock: Clock | None = None, *, timing: Timing | None = None, seed: int = 0
    ) -> None:
        self._cluster, self._clock = cluster, clock or cluster.clock
        self._timing, self._seed = timing or Timing(), seed
        self._nodes = NodeKeeper(cluster, self._clock)
        self._hosts = Hosts()
        self._pods: dict[str, _Tracked] = {}
        self._heap: list[tuple[float, int, str]] = []
        self._turn = 0
        self._news = threading.Event()
        self._watch = cluster.watch([NODE, POD], notify=self._news.set)
        cluster.serve_logs(podlogs.source(self._clock, cluster))

    # --- running ---

    def run(self, stop: threading.Event) -> None:
        """Serve until `stop` is set (looked at every second at the latest); a store that keeps nothing now is waited for."""
        while not stop.is_set():
            self._news.clear()
            try:
                if self.step():
                    continue
            except Unavailable as error:
                logger.warning("the kubelet waits for the store: %s", error)
                stop.wait(_LONGEST_WAIT)
                continue
            due = self.next_due()
            wait = _LONGEST_WAIT if due is None else self._clock.real(due - self._clock.now())
            self._news.wait(min(max(wait, 0.001), _LONGEST_WAIT))

    def step(self) -> int:
        """Take in what happened and do what is due by now; how many changes were written."""
        for event in self._watch.drain():
            self._take(event)
        written = self._nodes.heartbeat() + self._nodes.forget_events()
        now = self._clock.now()
        statuses: list[_Planned] = []
        stopped: list[_Tracked] = []
        while self._heap and self._heap[0][0] <= now:
            at, turn, pod_uid = heapq.heappop(self._heap)
            tracked = self._pods.get(pod_uid)
            if tracked is None or tracked.turn != turn:
                continue
            if tracked.stage == "starting" and (refusal := self._hosts.admit(tracked.pod)):
                statuses.append(_Planned(tracked, at, podstatus.refused(refusal)))
            elif (status := self._next_status(tracked, at)) is not None:
                statuses.append(_Planned(tracked, at, status))
            if tracked.stage in ("stopping", "lost"):
                stopped.append(tracked)
        try:
            return written + self._write(statuses) + self._remove(stopped)
        except Unavailable:
            for tracked in stopped:
                self._schedule(tracked, now)
            raise

    def settle(self) -> int:
        """Step until nothing is left to do at the present instant; how many changes were written."""
        total = 0
        while written := self.step():
            total += written
        return total

    def next_due(self) -> float | None:
        """The instant of the next thing to do, or None."""
        while self._heap:
            at, turn, pod_uid = self._heap[0]
            tracked = self._pods.get(pod_uid)
            if tracked is not None and tracked.turn == turn:
                return at
            heapq.heappop(self._heap)
        return None

    def close(self) -> None:
        """Stop watching."""
        self._watch.close()

    # --- nodes on request ---

    def lose_node(self, node: str) -> None:
        """Cut a node off: not ready, tainted, and its pods neither start nor end; 300 s later they are given up.

        From any thread. Raises NotFound.
        """
        self._nodes.lose(node)
        self._news.set()

    def recover_node(self, node: str) -> None:
        """Bring a lost node back; its pods catch up with what should have happened. From any thread. Raises NotFound."""
        self._nodes.recover(node)
        self._news.set()

    # --- one pod ---

    def _take(self, event: WatchEvent) -> None:
        if event.kind == NODE:
            self._take_node(event)
        elif event.kind == POD and event.type == "DELETED":
            self._pods.pop(uid(event.object), None)
            self._hosts.drop(event.object)
        elif event.kind == POD and (event.object.get("spec") or {}).get("nodeName"):
            self._take_pod(event.object)

    def _take_node(self, event: WatchEvent) -> None:
        """Pods of a node that went away, was lost or came back have another future now."""
        node = name(event.object)
        self._hosts.take_node(event)
        if not self._nodes.take(event):
            return
        for tracked in list(self._pods.values()):
            if tracked.pod["spec"].get("nodeName") == node:
                tracked.stage = ""
                self._take_pod(tracked.pod)

    def _take_pod(self, pod: Obj) -> None:
        tracked = self._pods.get(uid(pod))
        if tracked is None:
            tracked = self._pods[uid(pod)] = _Tracked(pod, fate_of(pod, self._timing, self._seed))
            self._report(pod, tracked.fate)
        tracked.pod = pod
        self._hosts.take(pod)
        stage, restarts = self._stage(pod), podstatus.restarts(pod)
        if stage == tracked.stage and restarts == tracked.restarts:
            return
        tracked.stage, tracked.restarts = stage, restarts
        self._schedule(tracked, self._due(tracked))

    def _stage(self, pod: Obj) -> str:
        """Where a pod with a node stands, by its object alone (and whether its node is there)."""
        phase = (pod.get("status") or {}).get("phase")
        if self._nodes.given_up_at(pod["spec"]["nodeName"]) is not None:
            return "lost"
        if is_deleting(pod):
            return "stopping"
        if phase in ("Succeeded", "Failed"):
            return "ended"
        state, _ = podstatus.main_state(pod)
        if phase == "Running":
            return "backing off" if state == "waiting" else "running"
        return "starting"

    def _due(self, tracked: _Tracked) -> float | None:
        """When the pod goes on from its stage; stamps are cut to seconds, so the present may be nearer the truth."""
        pod, fate, now = tracked.pod, tracked.fate, self._clock.now()
        match tracked.stage:
            case "lost":
                return self._nodes.given_up_at(pod["spec"]["nodeName"])
            case "stopping":
                since = parse_time(pod["metadata"]["deletionTimestamp"]) - (
                    pod["metadata"].get("deletionGracePeriodSeconds") or 0
                )
                grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
                return _refined(since, now) + min(fate.stop_delay, grace)
            case "starting":
                scheduled = condition(pod, "PodScheduled") or {}
                since = _instant(scheduled.get("lastTransitionTime"), pod["metadata"]["creationTimestamp"])
                return _refined(since, now) + fate.start_delay
            case "running":
                since = _instant(podstatus.main_state(pod)[1].get("startedAt"), (pod.get("status") or {}).get("startTime"))
                if not since <= tracked.started < since + 1:
                    tracked.started = since
                return self._end(tracked)
            case "backing off":
                return _instant(podstatus.last_finish(pod), None) + _back_off(tracked.restarts)
        return None

    def _end(self, tracked: _Tracked) -> float:
        """When a running pod ends: its duration, or its deadline when that comes first."""
        end = tracked.started + tracked.fate.duration
        deadline = self._deadline(tracked.pod)
        return end if deadline is None else min(end, deadline)

    @staticmethod
    def _deadline(pod: Obj) -> float | None:
        seconds, start = pod["spec"].get("activeDeadlineSeconds"), (pod.get("status") or {}).get("startTime")
        return parse_time(start) + seconds if seconds and start else None

    def _schedule(self, tracked: _Tracked, at: float | None) -> None:
        self._turn += 1
        tracked.turn = self._turn
        if at is not None:
            heapq.heappush(self._heap, (at, self._turn, uid(tracked.pod)))

    def _next_status(self, tracked: _Tracked, at: float) -> Obj | None:
        """The status of a pod whose turn it is; its next turn follows from what the watch then shows."""
        pod = tracked.pod
        match tracked.stage:
            case "starting" | "backing off":
                tracked.started = at
                return podstatus.running(pod, at)
            case "running":
                return self._ended(tracked, at)
            case "lost" if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                return podstatus.lost(pod, at)
        return None

    def _ended(self, tracked: _Tracked, at: float) -> Obj:
        """The status of a pod whose containers end: over, or waiting to start again."""
        pod, code, policy = tracked.pod, tracked.fate.exit_code(tracked.restarts), restart_policy(tracked.pod)
        deadline = self._deadline(pod)
        if deadline is not None and at >= deadline and at < tracked.started + tracked.fate.duration:
            message = "the pod was active longer than its activeDeadlineSeconds"
            return podstatus.ended(pod, at, 137, reason="DeadlineExceeded", message=message)
        if policy == "Always" or (policy == "OnFailure" and code):
            return podstatus.backing_off(pod, at, code, _back_off(tracked.restarts + 1))
        return podstatus.ended(pod, at, code)

    def _write(self, planned: list[_Planned]) -> int:
        """Write statuses at once. Whoever's pod changed meanwhile has another turn, after the change was taken in."""
        writes = [
            StatusWrite(namespace(p.tracked.pod), name(p.tracked.pod), p.status, p.tracked.pod["metadata"]["resourceVersion"])
            for p in planned
        ]
        try:
            outcomes = self._cluster.patch_status_many(POD, writes) if writes else []
        except Unavailable:
            for plan in planned:
                self._schedule(plan.tracked, plan.at)
            raise
        for plan, outcome in zip(planned, outcomes, strict=True):
            if isinstance(outcome.error, Conflict):
                self._schedule(plan.tracked, plan.at)
            else:
                self._complain(outcome)
                if outcome.error is None and plan.status.get("phase") == "Running":
                    devices.hand_over(self._cluster, plan.tracked.pod, self._nodes.get(plan.tracked.pod["spec"]["nodeName"]))
        return len(outcomes)

    def _remove(self, stopped: list[_Tracked]) -> int:
        pods = [(namespace(t.pod), name(t.pod), uid(t.pod)) for t in stopped]
        outcomes = self._cluster.remove_stopped(pods) if pods else []
        for outcome in outcomes:
            self._complain(outcome)
        return len(outcomes)

    @staticmethod
    def _complain(outcome: Outcome) -> None:
        if outcome.error is not None and not isinstance(outcome.error, (NotFound, Conflict)):
            logger.error("pod %s/%s: %s", outcome.namespace, outcome.name, outcome.error)

    def _report(self, pod: Obj, fate: Fate) -> None:
        """Tell of wrong annotations by an event on the pod; it runs as if they were missing."""
        for fault in fate.faults:
            stamp, host = now_stamp(self._clock), pod["spec"]["nodeName"]
            told = event_about(pod, "Warning", "InvalidSimulation", fault, stamp=stamp, component="kubelet", host=host)
            try:
                self._cluster.create(EVENT, told, field_manager="kubelet")
            except ApiError as error:
                logger.warning("no event about pod %s/%s: %s", namespace(pod), name(pod), error)


def _instant(text: str | None, otherwise: str | None) -> float:
    return parse_time(text or otherwise or "1970-01-01T00:00:00Z")


def _refined(stamped: float, now: float) -> float:
    """The instant that a stamp of whole seconds stands for: now, when it may be now."""
    return now if stamped <= now < stamped + 1 else stamped


def _back_off(restarts: int) -> float:
    """Seconds before the n-th restart: none, then 10, 20, 40 … 300."""
    return 0.0 if restarts <= 1 else min(_BACK_OFF * 2.0 ** min(restarts - 2, 10), _LONGEST_BACK_OFF)
