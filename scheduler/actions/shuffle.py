"""shuffle: evict what plugins say should run elsewhere, or not now. Used with tdm and rescheduling."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from cluster.said import said
from scheduler.framework.registry import action
from scheduler.framework.statement import Cause, Statement
from scheduler.model.tasks import TaskStatus

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session


@action
class Shuffle:
    """All running tasks are offered; who is named goes, as far as limits let it."""

    name: ClassVar[str] = "shuffle"

    def __init__(self, arguments: Arguments) -> None:
        """shuffle has no arguments."""

    def execute(self, ssn: Session) -> None:
        running = [task for job in ssn.jobs.values() for task in job.by_status[TaskStatus.RUNNING].values()]
        statement = Statement(ssn)
        for task, plugin in ssn.victims.victim_tasks(ssn.victims.in_order(running, None)).values():
            statement.evict(
                task, Cause(said("shuffled: %(plugin)s wants it to run elsewhere or later", plugin=plugin), self.name, plugin)
            )
        statement.commit()
