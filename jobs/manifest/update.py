"""What may change in a Job that exists: minAvailable, priorityClassName, and each task's replicas and minAvailable."""

from __future__ import annotations

from typing import Any

from cluster.pointers import pointer
from cluster.port import Obj
from cluster.said import said
from cluster.validation import Faults, without_nulls
from jobs.manifest.partitions import check_partitions
from jobs.manifest.totals import check_job_totals, check_minimum

_JOB_FREE = frozenset({"minAvailable", "priorityClassName"})
_TASK_FREE = frozenset({"replicas", "minAvailable"})
_WHY = said("cannot change any more: only minAvailable, priorityClassName and the tasks' replicas and minAvailable can")


def check_update(job: dict[str, Any], old: Obj, faults: Faults) -> None:
    """Compare a well-formed new manifest with the stored one."""
    new_spec, old_spec = job["spec"], without_nulls(old["spec"])
    new_tasks, old_tasks = new_spec.get("tasks") or [], old_spec.get("tasks") or []
    for field in sorted(new_spec.keys() | old_spec.keys()):
        if field in _JOB_FREE or field == "tasks":
            continue
        new, was = new_spec.get(field), old_spec.get(field)
        if field == "volumes":
            new, was = _without_made_names(new), _without_made_names(was)
        if new != was:
            faults.add(pointer("spec", field), _WHY, "immutable")
    if len(new_tasks) != len(old_tasks):
        faults.add(
            "/spec/tasks",
            said("must stay %(old)s tasks, not %(new)s: tasks cannot come or go", old=len(old_tasks), new=len(new_tasks)),
            "immutable",
        )
        return
    for index, (new_task, old_task) in enumerate(zip(new_tasks, old_tasks)):
        where = f"/spec/tasks/{index}"
        for field in sorted(new_task.keys() | old_task.keys()):
            if field not in _TASK_FREE and new_task.get(field) != old_task.get(field):
                faults.add(where + pointer(field), _WHY, "immutable")
        check_minimum(new_task, where, faults)
        if new_task.get("partitionPolicy"):
            check_partitions(new_task, where, faults)
    check_job_totals(new_spec, faults)


def _without_made_names(volumes: Any) -> Any:
    """Claims that the controller made have names that no manifest knows."""
    if not isinstance(volumes, list):
        return volumes
    return [
        {key: value for key, value in volume.items() if key != "volumeClaimName" or "volumeClaim" not in volume}
        for volume in volumes
    ]
