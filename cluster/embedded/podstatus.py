"""The statuses that a kubelet writes, as pure functions from a pod and an instant."""

from __future__ import annotations

import zlib
from typing import Any

from cluster.objects import stamp, uid, with_condition
from cluster.port import Obj

Status = dict[str, Any]


def main_state(pod: Obj) -> tuple[str, Obj]:
    """The first container's state (`waiting`, `running` or `terminated`, or empty when none is told) and its details."""
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        for state, details in (container.get("state") or {}).items():
            return state, details or {}
        break
    return "", {}


def restarts(pod: Obj) -> int:
    """How often the first container was started again."""
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        return int(container.get("restartCount") or 0)
    return 0


def running(pod: Obj, at: float) -> Status:
    """Every container runs and is ready."""
    status = pod.get("status") or {}
    state = {"running": {"startedAt": stamp(at)}}
    conditions = status.get("conditions")
    for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"):
        conditions = with_condition(conditions, _condition(kind, "True", at))
    node = (pod.get("spec") or {}).get("nodeName", "")
    return {
        "phase": "Running",
        "startTime": status.get("startTime") or stamp(at),
        "hostIP": _address(node, 10),
        "podIP": status.get("podIP") or _address(uid(pod), 11),
        "conditions": conditions,
        "initContainerStatuses": _init_statuses(pod, at),
        "containerStatuses": _containers(pod, state, ready=True),
    }


def ended(pod: Obj, at: float, exit_code: int, *, reason: str = "", message: str = "") -> Status:
    """Every container has ended, and so has the pod."""
    conditions = (pod.get("status") or {}).get("conditions")
    why = "PodCompleted" if exit_code == 0 else "PodFailed"
    for kind in ("Ready", "ContainersReady"):
        conditions = with_condition(conditions, _condition(kind, "False", at, why))
    told = {"reason": reason, "message": message} if reason else {}
    return {
        "phase": "Succeeded" if exit_code == 0 else "Failed",
        **told,
        "conditions": conditions,
        "containerStatuses": _containers(pod, {"terminated": _terminated(pod, at, exit_code)}, ready=False),
    }


def backing_off(pod: Obj, at: float, exit_code: int, wait: float) -> Status:
    """The containers ended and wait to be started again; the pod stays Running, as in Kubernetes."""
    conditions = (pod.get("status") or {}).get("conditions")
    for kind in ("Ready", "ContainersReady"):
        conditions = with_condition(conditions, _condition(kind, "False", at, "ContainersNotReady"))
    message = f"back-off {wait:g}s restarting failed container"
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    last = {"terminated": _terminated(pod, at, exit_code)}
    return {
        "phase": "Running",
        "conditions": conditions,
        "containerStatuses": _containers(pod, waiting, ready=False, last=last, restarts=restarts(pod) + 1),
    }


def lost(pod: Obj, at: float) -> Status:
    """The pod's node is gone for good, and the pod with it."""
    condition = _condition("DisruptionTarget", "True", at, "DeletionByPodGC", "the node was lost")
    return {
        "phase": "Failed",
        "reason": "NodeLost",
        "message": f"node {(pod.get('spec') or {}).get('nodeName', '')} was lost",
        "conditions": with_condition((pod.get("status") or {}).get("conditions"), condition),
    }


def refused(refusal: tuple[str, str]) -> Status:
    """The kubelet does not take the pod, for this reason, with this message; none of its containers begins."""
    reason, message = refusal
    return {"phase": "Failed", "reason": reason, "message": message}


def last_finish(pod: Obj) -> str:
    """When the first container last ended, or the empty text."""
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        for state in (container.get("state") or {}, container.get("lastState") or {}):
            if "terminated" in state:
                return str(state["terminated"].get("finishedAt") or "")
    return ""


def _condition(kind: str, status: str, at: float, reason: str = "", message: str = "") -> Obj:
    told = {name: text for name, text in (("reason", reason), ("message", message)) if text}
    return {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": stamp(at), **told}


def _containers(pod: Obj, state: Obj, *, ready: bool, last: Obj | None = None, restarts: int | None = None) -> list[Obj]:
    before = {c.get("name"): c for c in (pod.get("status") or {}).get("containerStatuses") or ()}
    found = []
    for container in (pod.get("spec") or {}).get("containers") or ():
        old = before.get(container.get("name"), {})
        image = container.get("image", "")
        found.append(
            {
                "name": container.get("name", ""),
                "image": image,
                "imageID": f"sim://{image}",
                "ready": ready,
                "started": ready,
                "restartCount": old.get("restartCount", 0) if restarts is None else restarts,
                "state": state,
                "lastState": old.get("lastState", {}) if last is None else last,
            }
        )
    return found


def _terminated(pod: Obj, at: float, exit_code: int) -> Obj:
    _, details = main_state(pod)
    return {
        "exitCode": exit_code,
        "reason": "Completed" if exit_code == 0 else "Error",
        "startedAt": details.get("startedAt") or stamp(at),
        "finishedAt": stamp(at),
    }


def _init_statuses(pod: Obj, at: float) -> list[Obj] | None:
    """Init containers are over within the start delay; sidecars among them run on."""
    found = []
    for container in (pod.get("spec") or {}).get("initContainers") or ():
        sidecar = container.get("restartPolicy") == "Always"
        over = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": stamp(at), "finishedAt": stamp(at)}}
        state = {"running": {"startedAt": stamp(at)}} if sidecar else over
        found.append({"name": container.get("name", ""), "ready": True, "restartCount": 0, "state": state})
    return found or None


def _address(text: str, first: int) -> str:
    """A private address that is always the same for a text; unique enough to look at, and never dialled."""
    number = zlib.crc32(text.encode())
    return f"10.{first * 8 + (number >> 20) % 8}.{(number >> 12) % 256}.{number % 254 + 1}"
