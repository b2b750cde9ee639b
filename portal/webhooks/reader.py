"""What the rules read: a local copy of the few kinds that most reviews ask for, and the cluster itself for everything else."""

from __future__ import annotations

import threading

from cluster import objects
from cluster.informer import Informer
from cluster.kinds import JOB_TEMPLATE, NAMESPACE, PRIORITY_CLASS, QUEUE, Kind
from cluster.port import Cluster, Obj, Page

COPIED = (QUEUE, NAMESPACE, PRIORITY_CLASS, JOB_TEMPLATE)
PUMP_SECONDS = 0.5


class NearReader:
    """See `cluster.port.Reader`. What the copy lacks is asked of the cluster: it may be a moment old."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._copy = Informer(cluster, COPIED, {})
        self._changed = threading.Event()

    @property
    def synced(self) -> bool:
        """Whether the copy is complete."""
        return self._copy.synced

    def run(self, stop: threading.Event) -> None:
        """Keep a copy up to date until told to stop; a run after a failure begins with a new one."""
        self._copy = copy = Informer(self._cluster, COPIED, {})
        copy.start(notify=self._changed.set)
        try:
            while not stop.is_set():
                self._changed.wait(PUMP_SECONDS)
                self._changed.clear()
                copy.pump()
        finally:
            copy.stop()

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        """The object. Raises NotFound."""
        if kind in COPIED and self._copy.synced:
            found = self._copy.get(kind, f"{(namespace or 'default') if kind.namespaced else ''}/{name}")
            if found is not None:
                return found
        return self._cluster.get(kind, name, namespace)

    def list(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", limit: int = 0, token: str = ""
    ) -> Page:
        """Objects of a kind."""
        if kind not in COPIED or not self._copy.synced or labels or fields or limit or token:
            return self._cluster.list(kind, namespace, labels=labels, fields=fields, limit=limit, token=token)
        found = [obj for obj in self._copy.all(kind) if not namespace or objects.namespace(obj) == namespace]
        return Page(found, "")
