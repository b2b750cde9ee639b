"""`manage.py mirror`: a Kubernetes cluster's objects into the database, for the pages; of several one works."""

from __future__ import annotations

from typing import Any

from portal import metrics, migrated
from portal.mirror import Mirror
from portal.parts import Run
from portal.process import PartCommand


class Command(PartCommand):
    help = "Keep the database of pages and REST up to date with a Kubernetes cluster."
    part, port = "mirror", 8082

    _mirror: Mirror | None = None

    def ready(self) -> str:
        """The database shows everything that was there at the start."""
        return "" if self._mirror is not None and self._mirror.synced.is_set() else "the first reading is not done yet"

    def runs(self, cluster: Any, options: dict[str, Any]) -> dict[str, Run]:
        """The mirror."""
        if self._mirror is None:
            metrics.watch_mirror(lambda: self._mirror)
        self._mirror = Mirror(cluster)
        return {"mirror": migrated.after(self._mirror.run)}
