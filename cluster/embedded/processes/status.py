"""The status of a pod whose containers are processes, as Kubernetes would write it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cluster.objects import stamp, with_condition
from cluster.port import Obj

Status = dict[str, Any]
IMAGE = "none: the process runtime runs the command on this machine"


@dataclass
class ContainerLife:
    """One container of a pod: where it stands, how often it began, how it last ended."""

    spec: Obj
    kind: str  # "init", "sidecar" or "main"
    state: str = "waiting"  # or "starting", "running", "terminated"
    reason: str = ""
    message: str = ""
    restarts: int = 0
    begun: int = 0
    started: float = 0.0
    due: float = 0.0
    ended: Obj | None = None
    last: Obj = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name in the pod."""
        return str(self.spec.get("name", ""))

    @property
    def code(self) -> int | None:
        """How it ended; None while it has not."""
        return None if self.ended is None else int(self.ended["exitCode"])

    @property
    def is_up(self) -> bool:
        """Whether processes of it may be there."""
        return self.state in ("starting", "running")


def terminated(life: ContainerLife, at: float, code: int, number: int = 0, reason: str = "", message: str = "") -> Obj:
    """The end of one attempt."""
    told: Obj = {
        "exitCode": code,
        "reason": reason or ("Completed" if code == 0 else "Error"),
        "startedAt": stamp(life.started or at),
        "finishedAt": stamp(at),
    }
    if number:
        told["signal"] = number
    if message:
        told["message"] = message
    return told


def pod_status(pod: Obj, lives: list[ContainerLife], phase: str, at: float, address: str, reason: str, message: str) -> Status:
    """The whole status; conditions of others stay."""
    before = pod.get("status") or {}
    mains = [life for life in lives if life.kind == "main"]
    is_initialized = all(life.code == 0 or (life.kind == "sidecar" and life.is_up) for life in lives if life.kind != "main")
    is_ready = phase == "Running" and all(life.state == "running" for life in mains)
    over = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "")
    conditions = before.get("conditions")
    for kind, value, why in (
        ("PodReadyToStartContainers", not over, ""),
        ("Initialized", is_initialized or bool(over), "" if is_initialized else "ContainersNotInitialized"),
        ("Ready", is_ready, over or ("" if is_ready else "ContainersNotReady")),
        ("ContainersReady", is_ready, over or ("" if is_ready else "ContainersNotReady")),
    ):
        told = {"type": kind, "status": "True" if value else "False", "lastProbeTime": None, "lastTransitionTime": stamp(at)}
        conditions = with_condition(conditions, told | ({"reason": why} if why and not value else {}))
    first = [life for life in lives if life.kind != "main"]
    status: Status = {
        "phase": phase,
        "startTime": before.get("startTime") or stamp(at),
        "hostIP": "127.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": conditions,
        "containerStatuses": [_container(life) for life in mains],
    }
    if first:
        status["initContainerStatuses"] = [_container(life) for life in first]
    if reason:
        status |= {"reason": reason, "message": message}
    return status


def _container(life: ContainerLife) -> Obj:
    if life.state == "running":
        state: Obj = {"running": {"startedAt": stamp(life.started)}}
    elif life.state == "terminated" and life.ended is not None:
        state = {"terminated": life.ended}
    else:
        waiting = {"reason": life.reason or ("PodInitializing" if life.kind == "main" else "ContainerCreating")}
        state = {"waiting": waiting | ({"message": life.message} if life.message else {})}
    running = life.state == "running"
    return {
        "name": life.name,
        "image": life.spec.get("image", ""),
        "imageID": IMAGE,
        "ready": running or (life.kind == "init" and life.code == 0),
        "started": running,
        "restartCount": life.restarts,
        "state": state,
        "lastState": {"terminated": life.last} if life.last else {},
    }
