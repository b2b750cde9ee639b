"""conformance: what keeps the cluster itself alive is never evicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from scheduler.framework.registry import plugin
from scheduler.model.tasks import TaskInfo

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

_CRITICAL = frozenset({"system-cluster-critical", "system-node-critical"})
_SYSTEM_NAMESPACE = "kube-system"


@plugin
class Conformance:
    """Spares critical pods and those of the system's namespace."""

    name: ClassVar[str] = "conformance"

    def __init__(self, arguments: Arguments) -> None:
        """conformance has no arguments."""

    def on_session_open(self, ssn: Session) -> None:
        ssn.add_preemptable(self.name, expendable)
        ssn.add_reclaimable(self.name, expendable)
        ssn.add_unified_evictable(self.name, lambda kind, job, candidates: _expendable(candidates))

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""


def expendable(preemptor: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
    """The candidates that are neither critical nor the system's."""
    return _expendable(candidates)


def _expendable(candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
    return [task for task in candidates if task.priority_class not in _CRITICAL and task.namespace != _SYSTEM_NAMESPACE]
