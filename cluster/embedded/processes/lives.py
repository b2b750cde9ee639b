"""The life of one pod: its init containers in order, its containers, their restarts, and its end.

`PodLife` decides; what it needs of the machine and the cluster it asks of a `House`, which the kubelet is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from cluster.embedded.fates import restart_policy
from cluster.embedded.processes.environment import ConfigError, Refused
from cluster.embedded.processes.status import ContainerLife, Status, pod_status, terminated
from cluster.embedded.processes.warden import Line
from cluster.objects import is_deleting, parse_time, uid
from cluster.port import Obj
from cluster.said import said
from cluster.said import told as sentence_of

_RETRY = 2.0
_BACK_OFF, _LONGEST_BACK_OFF, _HEALTHY_AFTER = 10.0, 300.0, 600.0
RESTARTED = "KubeletRestarted"
_GONE = "Basalt ended while it ran, and this container with it"


class House(Protocol):
    """What lives ask for."""

    def open_line(self, life: PodLife) -> Line:
        """A supervisor for the pod, its volumes made. Raises ConfigError."""
        ...

    def order(self, life: PodLife, container: ContainerLife) -> dict[str, Any]:
        """Everything that a supervisor needs to start a container. Raises ConfigError."""
        ...

    def hang_up(self, life: PodLife) -> None:
        """End the pod's supervisor."""
        ...

    def tell(self, pod: Obj, kind: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """An event about the pod."""
        ...


@dataclass
class Ending:
    """A pod that is being stopped: why, and when its containers are killed (monotonic seconds)."""

    reason: str
    message: str
    kill_at: float


class PodLife:
    """One pod with a node. `now` is the cluster's time, in seconds since the epoch."""

    def __init__(self, pod: Obj, house: House, address: str) -> None:
        self.pod, self.address = pod, address
        self._house = house
        self.line: Line | None = None
        self.ending: Ending | None = None
        self.over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        self.phase = str((pod.get("status") or {}).get("phase") or "Pending")
        self.reason = self.message = ""
        self.dirty = False
        self.wakes_at: float | None = None
        self.policy = restart_policy(pod)
        self.lives = [
            ContainerLife(spec, "sidecar" if spec.get("restartPolicy") == "Always" else "init")
            for spec in pod["spec"].get("initContainers") or ()
        ]
        self.lives += [ContainerLife(spec, "main") for spec in pod["spec"].get("containers") or ()]
        self._by_name = {life.name: life for life in self.lives}

    @property
    def uid(self) -> str:
        """The pod's."""
        return uid(self.pod)

    @property
    def is_up(self) -> bool:
        """Whether processes of it may be there."""
        return any(life.is_up for life in self.lives)

    # --- an earlier run ---

    def recover(self, now: float) -> None:
        """Go on from the status that an earlier run left: nothing of what ran then is there any more."""
        status = self.pod.get("status") or {}
        for told in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
            life = self._by_name.get(told.get("name"))
            if life is None:
                continue
            life.restarts = int(told.get("restartCount") or 0)
            life.last = (told.get("lastState") or {}).get("terminated") or {}
            state = told.get("state") or {}
            if "running" in state:
                life.started = parse_time(state["running"]["startedAt"])
                life.state = "running"
            elif "terminated" in state:
                life.state, life.ended = "terminated", state["terminated"]
            elif (state.get("waiting") or {}).get("reason") == "CrashLoopBackOff":
                life.due = now + _back_off(life.restarts)
        if self.over:
            return
        was_up = [life for life in self.lives if life.is_up]
        for life in was_up:
            self._ended(life, {"code": 137, "signal": 9, "reason": RESTARTED, "message": _GONE, "at": now})
        if was_up and not self.over and self.policy == "Never":
            self.reason, self.message = RESTARTED, _GONE
        if was_up:
            self._begin_anew()

    def _begin_anew(self) -> None:
        """A pod whose room is gone runs its init containers again, unless all that was left of it has ended."""
        if any(life.kind == "main" and life.state != "terminated" for life in self.lives):
            for life in self.lives:
                if life.kind == "init" and life.state == "terminated":
                    life.restarts, life.last = life.restarts + 1, life.ended or {}
                    life.state, life.ended, life.due = "waiting", None, 0.0

    # --- going on ---

    def advance(self, now: float) -> float | None:
        """Do what is due; when there is more to do by time alone, else None."""
        if self.over:
            return None
        if self.ending is None and (deadline := self._deadline()) is not None and now >= deadline:
            self.stop(
                0 if not self.is_up else self._grace(),
                "DeadlineExceeded",
                "the pod was active longer than its activeDeadlineSeconds",
            )
        if self.ending is not None:
            self._finish(now)
            return None
        try:
            self._go_on(now)
        except Refused as error:
            self._house.tell(self.pod, "Warning", "CannotRun", sentence_of(error))
            self.stop(self._grace(), "CannotRun", str(error))
            self._finish(now)
            return None
        waits = [life.due for life in self.lives if life.state == "waiting" and life.due > now]
        if (deadline := self._deadline()) is not None:
            waits.append(deadline)
        return min(waits, default=None)

    def _go_on(self, now: float) -> None:
        for life in self.lives:
            if life.kind == "init":
                if life.code != 0:
                    self._keep_up(life, now)
                    return
            elif life.kind == "sidecar":
                self._keep_up(life, now)
                if life.state != "running":
                    return
        for life in self.lives:
            if life.kind == "main":
                self._keep_up(life, now)
        if self.phase == "Pending" and any(
            life.kind == "main" and life.state in ("running", "terminated") for life in self.lives
        ):
            self.phase, self.dirty = "Running", True
        if all(life.state == "terminated" for life in self.lives if life.kind == "main"):
            self.stop(self._grace(), self.reason, self.message)
            self._finish(now)

    def _keep_up(self, life: ContainerLife, now: float) -> None:
        if life.state != "waiting" or life.due > now:
            return
        try:
            if self.line is None:
                self.line = self._house.open_line(self)
            order = self._house.order(self, life)
        except Refused:
            raise
        except (ConfigError, OSError) as error:
            if (life.reason, life.message) != ("CreateContainerConfigError", str(error)):
                life.reason, life.message, self.dirty = "CreateContainerConfigError", str(error), True
                self._house.tell(
                    self.pod, "Warning", "FailedToStart", said("container %(name)s: %(error)s", name=life.name, error=error)
                )
            life.due = now + _RETRY
            return
        life.state, life.reason, life.message = "starting", "", ""
        life.started = 0.0
        self.line.say({"do": "start", "container": order})

    # --- what the supervisor says ---

    def hear(self, message: dict[str, Any]) -> None:
        """A message of the pod's supervisor; an empty one says that it has ended."""
        match message.get("is"):
            case "started":
                life = self._by_name[message["name"]]
                life.state, life.started, self.dirty = "running", message["at"], True
            case "ended":
                self._ended(self._by_name[message["name"]], message)
            case "room":
                if not message["moved"] and self._needs_mounts():
                    text = said(
                        "nothing can be mounted for this pod (%(missing)s): its volumes are in $BASALT_VOLUMES",
                        missing=str(message["missing"]),
                    )
                    self._house.tell(self.pod, "Warning", "MountsUnavailable", text)
            case "failed":
                self._house.tell(self.pod, "Warning", "SupervisorFailed", str(message["message"]))
            case None:
                self._abandoned()

    def _needs_mounts(self) -> bool:
        return any(life.spec.get("volumeMounts") for life in self.lives)

    def _abandoned(self) -> None:
        self.line = None
        for life in self.lives:
            if life.is_up:
                told = {
                    "code": 137,
                    "signal": 9,
                    "reason": "SupervisorLost",
                    "message": "the pod's supervisor was ended from outside",
                }
                self._ended(life, told | {"at": time.time()})

    def _ended(self, life: ContainerLife, told: dict[str, Any]) -> None:
        """An attempt is over: for good, or to be made again after a while."""
        at, code = told["at"], int(told["code"])
        ended = terminated(life, at, code, told.get("signal", 0), told.get("reason", ""), told.get("message", ""))
        self.dirty = True
        if told.get("reason") == "StartError":
            self._house.tell(
                self.pod,
                "Warning",
                "FailedToStart",
                said("container %(name)s: %(error)s", name=life.name, error=str(told.get("message"))),
            )
        again = (
            life.kind == "sidecar" or (self.policy != "Never" and code != 0) or (self.policy == "Always" and life.kind == "main")
        )
        if self.ending is not None or not again:
            life.state, life.ended = "terminated", ended
            if life.kind == "init" and code != 0 and self.ending is None:
                self.stop(self._grace(), "", "")
            return
        if life.started and at - life.started > _HEALTHY_AFTER:
            life.begun = 0
        life.restarts, life.begun, life.last = life.restarts + 1, life.begun + 1, ended
        wait = _back_off(max(life.begun, 1))
        life.state, life.due, life.ended = "waiting", at + wait, None
        life.reason, life.message = "CrashLoopBackOff", f"back-off {wait:g}s restarting failed container"

    # --- the end ---

    def stop(self, grace: float, reason: str, message: str) -> None:
        """Begin to stop everything; again, it can only become sooner."""
        kill_at = time.monotonic() + grace
        if self.ending is None:
            self.ending = Ending(reason, message, kill_at)
        elif kill_at < self.ending.kill_at - 0.5:
            self.ending.kill_at = kill_at
        else:
            return
        mains = [life for life in self.lives if life.is_up and life.kind != "sidecar"]
        self._ask(mains or [life for life in self.lives if life.is_up])

    def _ask(self, lives: list[ContainerLife]) -> None:
        assert self.ending is not None
        for life in lives:
            if self.line is not None:
                grace = max(0.0, self.ending.kill_at - time.monotonic())
                hook = ((life.spec.get("lifecycle") or {}).get("preStop")) or {}
                self.line.say({"do": "stop", "name": life.name, "grace": grace, "hook": _hook_words(hook)})

    def _finish(self, now: float) -> None:
        """Once nothing runs any more: how the pod ended. Sidecars go last."""
        assert self.ending is not None
        up = [life for life in self.lives if life.is_up]
        if up and self.line is not None:
            if all(life.kind == "sidecar" for life in up):
                self._ask([life for life in up if life.reason != "Stopping"])
                for life in up:
                    life.reason = "Stopping"
            return
        self._house.hang_up(self)
        self.line, self.over, self.dirty = None, True, True
        codes = [life.code for life in self.lives if life.kind == "main"]
        failed = bool(self.ending.reason) or any(code != 0 for code in codes)
        self.phase = "Failed" if failed else "Succeeded"
        self.reason, self.message = self.ending.reason, self.ending.message

    def status(self, now: float) -> Status:
        """What is to be written. A pod that is being deleted keeps its phase: it did not fail."""
        status = pod_status(self.pod, self.lives, self.phase, now, self.address, self.reason, self.message)
        if is_deleting(self.pod):
            status["phase"] = (self.pod.get("status") or {}).get("phase") or "Pending"
            status.pop("reason", None)
            status.pop("message", None)
        return status

    def _grace(self) -> float:
        seconds = self.pod["spec"].get("terminationGracePeriodSeconds")
        return 30.0 if seconds is None else float(seconds)

    def _deadline(self) -> float | None:
        seconds, start = self.pod["spec"].get("activeDeadlineSeconds"), (self.pod.get("status") or {}).get("startTime")
        return parse_time(start) + seconds if seconds and start else None


def _hook_words(hook: Obj) -> list[str] | None:
    """A hook as words to run; None for kinds that are not run here."""
    if words := (hook.get("exec") or {}).get("command"):
        return [str(word) for word in words]
    if seconds := (hook.get("sleep") or {}).get("seconds"):
        return ["sleep", str(seconds)]
    return None


def _back_off(restarts: int) -> float:
    """Seconds before the n-th restart: none, then 10, 20, 40 … 300."""
    return 0.0 if restarts <= 1 else min(_BACK_OFF * 2.0 ** min(restarts - 2, 10), _LONGEST_BACK_OFF)
