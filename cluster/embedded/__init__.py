"""The cluster inside this process: objects in memory and in a table, watches, and a kubelet: simulated, or of this machine."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.admission import Admission
from cluster.clock import Clock, SystemClock

if TYPE_CHECKING:
    from cluster.embedded.claims import ClaimKeeper
    from cluster.embedded.fates import Timing
    from cluster.embedded.kubelet import Kubelet
    from cluster.embedded.lock import OwnerLock
    from cluster.embedded.processes.kubelet import ProcessKubelet
    from cluster.embedded.store import EmbeddedCluster
    from cluster.embedded.table import StoreTable


@dataclass(frozen=True, slots=True)
class Embedded:
    """An open embedded cluster: run `kubelet.run` and `claims.run` in threads of their own, and `close` at the end."""

    cluster: EmbeddedCluster
    kubelet: Kubelet | ProcessKubelet
    claims: ClaimKeeper
    _table: StoreTable
    _lock: OwnerLock

    def close(self) -> None:
        """Let the database and the lock go. Nothing may write any more."""
        self.claims.close()
        self.kubelet.close()
        self._table.close()
        self._lock.release()


def open_embedded(
    folder: Path,
    *,
    clock: Clock | None = None,
    admission: Admission | None = None,
    timing: Timing | None = None,
    seed: int = 0,
    prepare: Callable[[], None] | None = None,
    processes: Callable[[EmbeddedCluster], ProcessKubelet] | None = None,
) -> Embedded:
    """Open the cluster that lives in the store's table, as its only owner; `folder` holds the lock file.

    `prepare` is called as the owner before anything is read: it may bring the tables up to date. `processes` makes the
    kubelet that runs pods as processes of this machine; without it they are simulated.
    Objects are read back as they were. Raises `cluster.embedded.lock.StoreLocked` when another process owns it.
    """
    # The table needs Django; the store alone, which scenarios and simulations import, does not.
    from cluster.embedded.claims import ClaimKeeper
    from cluster.embedded.kubelet import Kubelet
    from cluster.embedded.lock import OwnerLock
    from cluster.embedded.store import EmbeddedCluster
    from cluster.embedded.table import StoreTable

    lock = OwnerLock(folder / "cluster.lock")
    lock.take()
    try:
        if prepare is not None:
            prepare()
        table = StoreTable()
        cluster = EmbeddedCluster(table=table, clock=clock or SystemClock(), admission=admission, start=table.load())
        gc.freeze()  # what was read back stays for long: no collection need look at it
        kubelet = processes(cluster) if processes else Kubelet(cluster, timing=timing, seed=seed)
        return Embedded(cluster, kubelet, ClaimKeeper(cluster), table, lock)
    except BaseException:
        lock.release()
        raise


__all__ = ["Embedded", "open_embedded"]
