"""overcommit: how much work may be admitted beyond what the cluster can hold at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.plugin import Answer, Vote
from scheduler.framework.registry import plugin
from scheduler.model.jobs import JobInfo
from scheduler.model.resources import Dimensions, Floats, Ints

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

_FACTOR = 1.2


@plugin
class Overcommit:
    """Admits while what waits fits into factor × total − used, on the dimensions that a job asks for."""

    name: ClassVar[str] = "overcommit"
    _dims: Dimensions
    _most: Ints
    _budget: Ints
    _waiting: Ints
    _left: list[int] | None

    def __init__(self, arguments: Arguments) -> None:
        factor = arguments.number("overcommit-factor", _FACTOR)
        self._factor = factor if factor >= 1 else _FACTOR

    def on_session_open(self, ssn: Session) -> None:
        self._dims = ssn.dims
        # Exact comparison of whole units with a float budget is comparison with its floor.
        most = np.asarray(ssn.total.values * self._factor, dtype=np.float64)
        self._most = _whole(most)
        self._budget = _whole(most - ssn.nodes.used.sum(axis=0))
        self._waiting = ssn.roster.reserved()
        self._left: list[int] | None = None
        ssn.add_enqueueable(self.name, self.admits)
        ssn.add_enqueued(self.name, self.charge)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    def admits(self, job: JobInfo) -> Answer:
        """Whether the job's minResources still fit into the budget; a verdict's `limit` is the budget of an empty cluster."""
        if job.min_resources is None:
            return Vote.PERMIT
        if self._left is None:
            self._left = (self._budget - self._waiting).tolist()
        left = self._left
        place, asked = next(((place, asked) for place, asked in job.min_resources.terms if asked > left[place]), (-1, 0))
        if place < 0:
            return Vote.PERMIT
        free = left[place]
        return Verdict(
            Stage.ADMISSION,
            Code.OVERCOMMIT,
            queue=job.queue,
            resource=self._dims.names[place],
            asked=asked,
            free=free,
            short=asked - free,
            limit=int(self._most[place]),
        )

    def charge(self, job: JobInfo) -> None:
        """The job was admitted."""
        if job.min_resources is not None and job.impossible is None:
            self._waiting += job.enqueue_charge()
            self._left = None


def _whole(amounts: Floats) -> Ints:
    return np.clip(np.floor(amounts), -(2.0**62), 2.0**62).astype(np.int64)
