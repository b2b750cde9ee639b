"""Evictions as Kubernetes wants them: by the eviction subresource, which minds disruption budgets, with the reason on the pod."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Literal

from cluster.clock import SystemClock
from cluster.errors import ApiError, TooManyRequests
from cluster.kinds import POD
from cluster.kubernetes import verbs
from cluster.kubernetes.transport import Request
from cluster.objects import now_stamp
from cluster.port import Eviction, Obj

TARGET = "DisruptionTarget"
"""The pod condition by which Kubernetes says that a pod is being evicted."""

Fallback = Literal["none", "delete"]
"""What becomes of a pod whose eviction a budget refuses: it stays, or it is deleted all the same, as Volcano deletes pods."""

_STRATEGIC = "application/strategic-merge-patch+json"
_SEVERAL_BUDGETS = "more than one PodDisruptionBudget"

log = logging.getLogger(__name__)

Run = Callable[[Sequence[Request]], list[Obj | ApiError]]


class Evictor:
    """Evicts many pods at once; `run` makes requests."""

    def __init__(self, run: Run, fallback: Fallback = "none") -> None:
        self._run, self._fallback = run, fallback

    def evict(self, evictions: Sequence[Eviction]) -> list[Obj | ApiError]:
        """What became of each, in order."""
        landed = self._run([verbs.evict(eviction) for eviction in evictions])
        if self._fallback == "delete":
            refused = [number for number, each in enumerate(landed) if _is_budget(each)]
            victims = [evictions[number] for number in refused]
            for victim in victims:
                log.info("pod %s/%s is deleted: a disruption budget refused its eviction", victim.namespace, victim.name)
            deleted = self._run([verbs.delete(POD, victim.name, victim.namespace, victim.uid) for victim in victims])
            for number, each in zip(refused, deleted, strict=True):
                landed[number] = each
        self._explain([e for e, each in zip(evictions, landed, strict=True) if e.reason and not isinstance(each, ApiError)])
        return landed

    def _explain(self, evictions: Sequence[Eviction]) -> None:
        """Condition DisruptionTarget of pods on their way out; one that is gone needs no reason any more.

        The list is merged by type, so that no other condition is read or touched.
        """
        stamp = now_stamp(SystemClock())
        told = [self._reason(eviction, stamp) for eviction in evictions]
        for eviction, each in zip(evictions, self._run(told), strict=True):
            if isinstance(each, ApiError):
                log.debug("pod %s/%s could not be told why it goes: %s", eviction.namespace, eviction.name, each)

    @staticmethod
    def _reason(eviction: Eviction, stamp: str) -> Request:
        condition = {"type": TARGET, "status": "True", "reason": eviction.reason, "message": eviction.message}
        body: Obj = {"status": {"conditions": [{**condition, "lastTransitionTime": stamp}]}}
        if eviction.uid:
            body["metadata"] = {"uid": eviction.uid}
        plain = verbs.patch_status(POD, eviction.name, eviction.namespace, {})
        return Request("PATCH", plain.path, None, body, _STRATEGIC)


def _is_budget(landed: Obj | ApiError) -> bool:
    """Whether a budget said no, or several did, of which a server can ask none."""
    if isinstance(landed, TooManyRequests):
        return True
    return isinstance(landed, ApiError) and _SEVERAL_BUDGETS in str(landed)
