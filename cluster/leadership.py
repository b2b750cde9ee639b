"""Leadership by a Lease: of several processes that could do a work one does it, and another takes over when that one is gone.

Who leads may write until `deadline` seconds after the moment at which it last *asked* for its lease; others wait `lease` seconds
from the moment at which they last *saw* it renewed. Both count on clocks of their own that only go forward, so that skewed wall
clocks change nothing, and a leader that hangs has stopped writing before anybody else begins.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from cluster.errors import AlreadyExists, ApiError, Conflict, NotFound, Unavailable
from cluster.kinds import LEASE
from cluster.port import Cluster, Obj

LEASE_SECONDS, DEADLINE_SECONDS, RETRY_SECONDS = 10.0, 7.0, 1.5
_POLL = 0.1
_RELEASED_SECONDS = 1

log = logging.getLogger(__name__)


def identity() -> str:
    """A name for this process that no other has."""
    return f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"


class Election:
    """One candidate for one Lease. `cluster` is used for the Lease alone; its requests should not wait long for answers."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        namespace: str,
        *,
        who: str = "",
        lease: float = LEASE_SECONDS,
        deadline: float = DEADLINE_SECONDS,
        retry: float = RETRY_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 0 < retry < deadline < lease:
            raise ValueError("retry must be below deadline, and deadline below lease")
        self._cluster, self._name, self._namespace, self.who = cluster, name, namespace, who or identity()
        self._lease, self._deadline, self._retry, self._monotonic = lease, deadline, retry, monotonic
        self._until = float("-inf")
        self._seen: Obj = {}
        self._seen_at = float("-inf")
        self.holder = ""

    @property
    def leads(self) -> bool:
        """Whether this process may write now."""
        return self._monotonic() < self._until

    def check(self) -> None:
        """Raise Unavailable unless this process leads: what guards each of its writes."""
        if not self.leads:
            raise Unavailable(
                f"this process does not lead ({self.holder or 'nobody'} holds the lease {self._name}): nothing is written"
            )

    def run(self, stop: threading.Event, work: Callable[[threading.Event], None]) -> None:
        """Run `work(end)` whenever this process leads; `end` is set when it does no more. Blocks until `stop`."""
        campaign = threading.Thread(target=self._campaign, args=(stop,), name="lease", daemon=True)
        campaign.start()
        while not stop.is_set():
            if not self.leads:
                stop.wait(_POLL)
                continue
            log.info("%s leads: it holds the lease %s", self.who, self._name)
            end = threading.Event()
            worker = threading.Thread(target=work, args=(end,), name=f"{self._name}-work", daemon=True)
            worker.start()
            while self.leads and not stop.is_set() and worker.is_alive():
                stop.wait(_POLL)
            end.set()
            if not stop.is_set():
                log.warning("%s leads no more: it could not renew the lease %s in time", self.who, self._name)
            worker.join()
        campaign.join()
        self.resign()

    def attempt(self) -> bool:
        """Take the lease, or renew it; whether this process leads. Raises ApiError."""
        asked = self._monotonic()
        try:
            known = self._cluster.get(LEASE, self._name, self._namespace)
        except NotFound:
            return self._taken(asked, lambda: self._cluster.create(LEASE, self._fresh({})))
        spec = known.get("spec") or {}
        if spec != self._seen:
            self._seen, self._seen_at = spec, self._monotonic()
        self.holder = str(spec.get("holderIdentity") or "")
        promised = max(float(spec.get("leaseDurationSeconds") or 0), 1.0)
        if self.holder not in ("", self.who):
            self._until = float("-inf")
            if self._monotonic() < self._seen_at + promised:
                return False
        return self._taken(asked, lambda: self._cluster.replace(LEASE, self._fresh(known)))

    def resign(self) -> None:
        """Give the lease back, so that nobody has to wait for its end."""
        if not self.leads:
            return
        self._until = float("-inf")
        try:
            known = self._cluster.get(LEASE, self._name, self._namespace)
            if (known.get("spec") or {}).get("holderIdentity") == self.who:
                spec = {**known["spec"], "holderIdentity": "", "leaseDurationSeconds": _RELEASED_SECONDS}
                self._cluster.replace(LEASE, {**known, "spec": spec})
        except ApiError as error:
            log.info("the lease %s runs out by itself: %s", self._name, error)

    def _campaign(self, stop: threading.Event) -> None:
        said = ""
        while not stop.is_set():
            try:
                self.attempt()
                said = ""
            except ApiError as error:
                if str(error) != said:
                    said = str(error)
                    log.warning("the lease %s could not be asked for: %s", self._name, error)
            except Exception:  # the campaign outlives whatever a server answers
                log.exception("the lease %s could not be asked for", self._name)
            stop.wait(self._retry)

    def _taken(self, asked: float, write: Callable[[], Obj]) -> bool:
        try:
            kept = write()
        except (Conflict, AlreadyExists):
            return False  # somebody else was quicker; the next attempt sees who
        self._seen, self._seen_at, self.holder = kept.get("spec") or {}, self._monotonic(), self.who
        self._until = asked + self._deadline
        return self.leads

    def _fresh(self, known: Obj) -> Obj:
        """The Lease as this process writes it over a known one."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        old = known.get("spec") or {}
        is_new = old.get("holderIdentity") != self.who
        spec = {
            **old,
            "holderIdentity": self.who,
            "leaseDurationSeconds": max(1, round(self._lease)),
            "renewTime": now,
            "acquireTime": now if is_new else old.get("acquireTime") or now,
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + (is_new and bool(known)),
        }
        meta = known.get("metadata") or {"name": self._name, "namespace": self._namespace}
        return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": meta, "spec": spec}
