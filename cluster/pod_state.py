"""A pod in one line, as `kubectl get pods` says it: how many containers are ready, in which state it is, how often it restarted.

Pure. The rules are kubectl's: the word is the phase, or what says more, such as why a container waits or ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cluster.port import Obj


@dataclass(frozen=True, slots=True)
class PodState:
    """`restarted_at` is the instant of the last restart as Kubernetes writes it, or empty."""

    ready: int
    containers: int
    word: str
    restarts: int
    restarted_at: str

    @classmethod
    def of(cls, pod: Obj) -> PodState:
        """The state of a pod object; of fields that are missing the least is said."""
        spec, status = pod.get("spec") or {}, pod.get("status") or {}
        sidecars = {c.get("name") for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
        inits: Sequence[Obj] = status.get("initContainerStatuses") or ()
        mains: Sequence[Obj] = status.get("containerStatuses") or ()
        starting, ready = _starting(inits, sidecars, max(len(inits), len(spec.get("initContainers") or ())))
        kept = inits if starting else [state for state in inits if state.get("name") in sidecars]
        counted = [*kept, *mains]
        word = starting or _word(pod, mains)
        if not starting:
            ready += sum(1 for state in mains if _runs(state))
        if pod["metadata"].get("deletionTimestamp") and status.get("phase") not in ("Succeeded", "Failed"):
            word = "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
        ends = [(((state.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or "") for state in counted]
        return cls(
            ready=ready,
            containers=len(spec.get("containers") or ()) + len(sidecars),
            word=word,
            restarts=sum(int(state.get("restartCount") or 0) for state in counted),
            restarted_at=max(ends, default=""),
        )


def _starting(states: Sequence[Obj], sidecars: set[str | None], total: int) -> tuple[str, int]:
    """How far the init containers are (empty when all have done their part), and how many sidecars are ready."""
    ready = 0
    for place, each in enumerate(states):
        state = each.get("state") or {}
        ended = state.get("terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if each.get("name") in sidecars and each.get("started"):
            ready += bool(each.get("ready"))
            continue
        reason = _why(state)
        return (f"Init:{reason}" if reason and reason != "PodInitializing" else f"Init:{place}/{total}"), ready
    return "", ready


def _word(pod: Obj, states: Sequence[Obj]) -> str:
    """Of a pod whose init containers are through: its reason or phase, and over both what its first telling container says."""
    status = pod.get("status") or {}
    said = str(status.get("reason") or status.get("phase") or "Pending")
    conditions = {c.get("type"): c for c in status.get("conditions") or ()}
    if (conditions.get("PodScheduled") or {}).get("reason") == "SchedulingGated":
        said = "SchedulingGated"
    said = next((reason for state in states if (reason := _why(state.get("state") or {}))), said)
    if said == "Completed" and any(_runs(state) for state in states):
        return "Running" if (conditions.get("Ready") or {}).get("status") == "True" else "NotReady"
    return said


def _runs(state: Obj) -> bool:
    return bool(state.get("ready")) and "running" in (state.get("state") or {})


def _why(state: Obj) -> str:
    """Why a container waits or how it ended; empty while it runs."""
    ended = state.get("terminated")
    if ended is not None:
        by_signal = f"Signal:{ended.get('signal')}" if ended.get("signal") else ""
        return str(ended.get("reason") or by_signal or f"ExitCode:{ended.get('exitCode', 0)}")
    return str((state.get("waiting") or {}).get("reason") or "")
