"""What kube-controller-manager would do where only an API server runs: collect what is owned by nobody any more."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from cluster.errors import ApiError
from cluster.kinds import Kind
from cluster.port import Cluster, Obj

_PAUSE = 0.05
_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"


class Collector:
    """Garbage collection by owner references over some kinds, over and over, in a thread of its own."""

    def __init__(self, cluster: Cluster, kinds: Sequence[Kind]) -> None:
        self._cluster, self._kinds = cluster, kinds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for the end."""
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.wait(_PAUSE):
            try:
                listed = [(kind, obj) for kind in self._kinds for obj in self._cluster.list(kind).items]
            except ApiError:
                continue  # the server is away
            for kind, obj in listed:
                try:
                    self._look_at(kind, obj, listed)
                except ApiError:
                    continue  # it changed meanwhile: the next round looks again

    def _look_at(self, kind: Kind, obj: Obj, listed: Iterable[tuple[Kind, Obj]]) -> None:
        meta = obj["metadata"]
        owned = [(k, o) for k, o in listed if any(r["uid"] == meta["uid"] for r in o["metadata"].get("ownerReferences", ()))]
        finalizers = meta.get("finalizers") or []
        if meta.get("deletionTimestamp"):
            self._finish(kind, meta, finalizers, owned)
        elif owners := meta.get("ownerReferences"):
            alive = {o["metadata"]["uid"]: o["metadata"] for _, o in listed}
            kept = [r for r in owners if r["uid"] in alive and _FOREGROUND not in (alive[r["uid"]].get("finalizers") or ())]
            if not kept:
                self._cluster.delete(kind, meta["name"], meta.get("namespace", ""), uid=meta["uid"])
            elif len(kept) < len(owners):
                self._patch(kind, meta, {"ownerReferences": kept})

    def _finish(self, kind: Kind, meta: Obj, finalizers: list[str], owned: list[tuple[Kind, Obj]]) -> None:
        if _ORPHAN in finalizers:
            for child_kind, child in owned:
                kept = [r for r in child["metadata"]["ownerReferences"] if r["uid"] != meta["uid"]]
                self._patch(child_kind, child["metadata"], {"ownerReferences": kept or None})
            self._patch(kind, meta, {"finalizers": [f for f in finalizers if f != _ORPHAN]})
        elif _FOREGROUND in finalizers and not owned:
            self._patch(kind, meta, {"finalizers": [f for f in finalizers if f != _FOREGROUND]})

    def _patch(self, kind: Kind, meta: Obj, change: Obj) -> None:
        body = {"metadata": {**change, "uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}}
        self._cluster.patch(kind, meta["name"], meta.get("namespace", ""), body)
