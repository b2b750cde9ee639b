"""Events on objects: what the controllers tell people. Equal ones are counted on one Event, told again only now and then."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import OrderedDict

from cluster import objects
from cluster.clock import Clock
from cluster.errors import AlreadyExists, ApiError
from cluster.events import Level, event_about, saying
from cluster.kinds import EVENT
from cluster.port import Cluster, Obj
from cluster.recorder import BURST, RATE, Budget

COMPONENT = "vc-controller-manager"
QUIET_SECONDS = 10.0
_REMEMBERED = 10_000

log = logging.getLogger(__name__)


class EventRecorder:
    """Writes Events. Telling is never worth failing for: a refused Event is logged. Of one object so much is told at once, and
    ever less from then on, as client-go has it."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._said: OrderedDict[str, float] = OrderedDict()
        self._budgets: OrderedDict[str, Budget] = OrderedDict()
        self._lock = threading.Lock()

    def normal(self, obj: Obj, reason: str, message: str) -> None:
        """Something was done; told every time."""
        self._record(obj, "Normal", reason, message)

    def warning(self, obj: Obj, reason: str, message: str) -> None:
        """Something went wrong. One Event for all of a reason: its message is the newest, told at most every few seconds."""
        self._record(obj, "Warning", reason, message)

    def _record(self, obj: Obj, level: Level, reason: str, message: str) -> None:
        same = (objects.uid(obj), level, reason, *((message,) if level == "Normal" else ()))
        name = f"{objects.name(obj)[:236]}.{hashlib.sha256(chr(0).join(same).encode()).hexdigest()[:16]}"
        if (level == "Warning" and not self._is_due(name)) or not self._is_affordable(objects.uid(obj)):
            return
        try:
            self._write(name, obj, level, reason, message)
        except ApiError as error:
            log.warning("event %s on %s was not kept: %s", reason, objects.key(obj), error)

    def _is_due(self, name: str) -> bool:
        now = self._clock.now()
        with self._lock:
            if now - self._said.get(name, float("-inf")) < QUIET_SECONDS:
                return False
            self._said[name] = now
            self._said.move_to_end(name)
            if len(self._said) > _REMEMBERED:
                self._said.popitem(last=False)
        return True

    def _is_affordable(self, uid: str) -> bool:
        now = self._clock.now()
        with self._lock:
            budget = self._budgets.setdefault(uid, Budget(BURST, RATE, now))
            self._budgets.move_to_end(uid)
            if len(self._budgets) > _REMEMBERED:
                self._budgets.popitem(last=False)
            return budget.take(now)

    def _write(self, name: str, obj: Obj, level: Level, reason: str, message: str) -> None:
        stamp = objects.now_stamp(self._clock)
        told = event_about(obj, level, reason, message, stamp=stamp, component=COMPONENT, name=name)
        try:
            self._cluster.create(EVENT, told)
        except AlreadyExists:
            namespace = objects.namespace(told)
            known = self._cluster.get(EVENT, name, namespace)
            again = {
                "metadata": {"annotations": saying(message)},
                "count": int(known.get("count") or 1) + 1,
                "lastTimestamp": stamp,
                "message": told["message"],
            }
            self._cluster.patch(EVENT, name, namespace, again)
