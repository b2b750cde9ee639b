"""Containers of pods on a Kubernetes cluster: their logs are the kubelets', and are read through the API server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from cluster import objects, runtime
from cluster.embedded.processes.environment import ConfigError, data_of
from cluster.errors import ApiError, Forbidden, NotFound
from cluster.kinds import POD, SECRET
from cluster.logs.masking import patterns
from cluster.logs.remote import RemoteStream, secret_names
from cluster.port import Obj

MOST_PODS = 50
"""Pods whose logs are read together: each is a request, and one that is followed a connection."""
KNOWN_SECONDS = 30.0
"""For which the values of a Secret are taken from memory."""


def stream(pod: Obj, container: str, *, previous: bool) -> RemoteStream:
    """The log of one container of a pod that is there."""
    cluster: Any = runtime.current()
    where, name, uid = objects.namespace(pod), objects.name(pod), objects.uid(pod)

    def asked(parameters: dict[str, str]) -> Any:
        return cluster.open_log(where, name, {"container": container, **parameters})

    secrets, _ = secrets_of(pod)
    node = str((pod.get("spec") or {}).get("nodeName") or "")
    return RemoteStream(asked, partial(_has_ended, where, name, uid, container), secrets, previous, node)


def attempt(pod: Obj, container: str) -> int:
    """How often a container was begun anew."""
    return int((_status(pod, container) or {}).get("restartCount") or 0)


def secrets_of(pod: Obj) -> tuple[list[bytes], bool]:
    """What of a pod's logs is masked: patterns of the values of its Secrets, and whether all of them could be read."""
    values: list[bytes] = []
    whole = True
    for name in sorted(secret_names(pod)):
        found = _known.values(objects.namespace(pod), name)
        whole = whole and found is not None
        values += found or []
    return patterns(values), whole


def _has_ended(where: str, name: str, uid: str, container: str) -> bool:
    try:
        pod = runtime.current().get(POD, name, where)
    except NotFound:
        return True
    except ApiError:
        return False  # nobody knows now
    if objects.uid(pod) != uid or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return True
    state = (_status(pod, container) or {}).get("state") or {}
    return "terminated" in state and (pod.get("spec") or {}).get("restartPolicy") == "Never"


def _status(pod: Obj, container: str) -> Obj | None:
    status = pod.get("status") or {}
    told = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return next((each for each in told if each.get("name") == container), None)


class _Known:
    """Values of Secrets for a moment, so that a log of many pods reads each once."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._found: dict[tuple[str, str], tuple[float, list[bytes] | None]] = {}
        self._now = now

    def values(self, namespace: str, name: str) -> list[bytes] | None:
        """All values of a Secret; none of one that is not there; None when it may not, or cannot, be read."""
        now = self._now()
        with self._lock:
            self._found = {key: entry for key, entry in self._found.items() if entry[0] > now}
            if (known := self._found.get((namespace, name))) is not None:
                return known[1]
        found = self._read(namespace, name)
        with self._lock:
            self._found[namespace, name] = (now + KNOWN_SECONDS, found)
        return found

    @staticmethod
    def _read(namespace: str, name: str) -> list[bytes] | None:
        try:
            return list(data_of(SECRET, runtime.current().get(SECRET, name, namespace)).values())
        except NotFound:
            return []
        except (Forbidden, ApiError, ConfigError):
            return None


_known = _Known()
