"""What admission fills into a new Job, in Volcano's order. Faulty values are left for validation to name."""

from __future__ import annotations

from typing import Any

from cluster.port import Obj
from jobs.plugins import NEEDS

DEFAULT_QUEUE = "default"
DEFAULT_SCHEDULER = "volcano"
DEFAULT_MAX_RETRY = 3


def default(obj: Obj, scheduler: str = DEFAULT_SCHEDULER) -> None:
    """Fill in queue, scheduler name, retries, role names and minima, the gang minimum and the plugins that others need."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    if not spec.get("queue"):
        spec["queue"] = DEFAULT_QUEUE
    if not spec.get("schedulerName"):
        spec["schedulerName"] = scheduler
    if _absent_or_zero(spec.get("maxRetry")):
        spec["maxRetry"] = DEFAULT_MAX_RETRY
    tasks = [task for task in _list(spec.get("tasks")) if isinstance(task, dict)]
    for index, task in enumerate(_list(spec.get("tasks"))):
        if isinstance(task, dict):
            _default_task(task, index)
    if _absent_or_zero(spec.get("minAvailable")):
        minima = [minimum for task in tasks if isinstance(minimum := task.get("minAvailable"), int)]
        if len(minima) == len(tasks):
            spec["minAvailable"] = sum(minima)
    _listen(spec)
    _complete_plugins(spec)


def _default_task(task: dict[str, Any], index: int) -> None:
    if not task.get("name"):
        task["name"] = f"default{index}"
    if _absent_or_zero(task.get("maxRetry")):
        task["maxRetry"] = DEFAULT_MAX_RETRY
    if task.get("replicas") is None:
        task["replicas"] = 0
    if task.get("minAvailable") is None and isinstance(task["replicas"], int):  # else the fault would be told twice
        task["minAvailable"] = _default_minimum(task)
    _listen(task)
    template = task.get("template")
    pod = template.get("spec") if isinstance(template, dict) else None
    if isinstance(pod, dict) and pod.get("hostNetwork") is True and not pod.get("dnsPolicy"):
        pod["dnsPolicy"] = "ClusterFirstWithHostNet"


def _default_minimum(task: dict[str, Any]) -> Any:
    policy = task.get("partitionPolicy")
    if isinstance(policy, dict):
        minimum, size = policy.get("minPartitions"), policy.get("partitionSize")
        if isinstance(minimum, int) and isinstance(size, int) and minimum > 0:
            return minimum * size
    return task["replicas"]


def _listen(holder: dict[str, Any]) -> None:
    """`events: PodFailed` is met in the wild, where a list of one is meant."""
    for policy in _list(holder.get("policies")):
        if isinstance(policy, dict) and isinstance(policy.get("events"), str):
            policy["events"] = [policy["events"]]


def _complete_plugins(spec: dict[str, Any]) -> None:
    plugins = spec.get("plugins")
    if isinstance(plugins, dict):
        plugins.update({plugin: [] for plugin, arguments in plugins.items() if arguments is None})
        for name in [needed for plugin in plugins for needed in NEEDS.get(plugin, ())]:
            plugins.setdefault(name, [])


def _absent_or_zero(value: Any) -> bool:
    return value is None or (value == 0 and not isinstance(value, bool | float))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
