"""What a namespace allows: its ResourceQuotas over the whole job, its LimitRanges over each pod and container.

Kubernetes refuses pods that break these only when they are made; here they are told beside the field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _

from cluster.display import quantity
from cluster.errors import ApiError
from cluster.kinds import LIMIT_RANGE, RESOURCE_QUOTA
from cluster.objects import container_requests, pod_requests, resource_units
from cluster.port import Cluster, Obj
from jobs.submit.notes import Note, amount_of
from scheduler.model.quotas import quota


def namespace_notes(cluster: Cluster, job: Obj, least: Mapping[str, int]) -> list[Note]:
    """What the quotas and ranges of the job's namespace say to it. A cluster that does not tell them says nothing."""
    namespace = job["metadata"].get("namespace") or "default"
    found: list[Note] = []
    for kind, say in ((RESOURCE_QUOTA, quota_notes), (LIMIT_RANGE, range_notes)):
        try:
            items = cluster.list(kind, namespace=namespace).items
        except ApiError:  # it may not be asked for by us, or is not served: admission tells it later
            continue
        for each in items:
            found += say(each, job, least)
    return found


def quota_notes(obj: Obj, _job: Obj, least: Mapping[str, int]) -> Iterator[Note]:
    """Resources of which the smallest gang asks more than the quota holds, or than is left of it."""
    try:
        known = quota(obj)
    except ValueError:
        return
    for limit in known.limits:
        resource = limit.resource.removeprefix("limits.")
        asked = least.get(resource, 0)
        if limit.resource.startswith("limits.") or not asked:
            continue
        left = limit.hard - (limit.used or 0)
        values = {"quota": known.name, "asked": quantity(asked, resource)}
        if asked > limit.hard:
            values["limit"] = quantity(limit.hard, resource)
            text = _("The gang asks %(asked)s; quota %(quota)s of the namespace allows %(limit)s.") % values
            yield Note("bad", text, "/metadata/namespace")
        elif asked > left:
            values["left"] = quantity(max(0, left), resource)
            text = _("The gang asks %(asked)s; of quota %(quota)s of the namespace %(left)s is left.") % values
            yield Note("warn", text, "/metadata/namespace")


def range_notes(obj: Obj, job: Obj, _least: Mapping[str, int]) -> Iterator[Note]:
    """Pods and containers that ask for less or more than a LimitRange lets them."""
    limits = [each for each in (obj.get("spec") or {}).get("limits") or () if each.get("type") in ("Pod", "Container")]
    for index, task in enumerate(job["spec"]["tasks"]):
        pod = task["template"]["spec"]
        for each in limits:
            if each["type"] == "Pod":
                asks = [("", pod_requests(pod))]
            else:
                asks = [(str(one.get("name") or ""), container_requests(one)) for one in pod.get("containers") or ()]
            for container, asked in asks:
                yield from _outside(each, asked, index, pod, str(task.get("name") or ""), container)


def _outside(limit: Obj, asked: Mapping[str, int], index: int, pod: dict[str, Any], task: str, container: str) -> Iterator[Note]:
    try:
        most, fewest = resource_units(limit.get("max")), resource_units(limit.get("min"))
    except ValueError:
        return
    for resource in most.keys() | fewest.keys():
        units = asked.get(resource, 0)
        values = {"task": task, "container": container, "asked": quantity(units, resource)}
        where = amount_of(index, pod, resource)
        if resource in most and units > most[resource]:
            values["limit"] = quantity(most[resource], resource)
            text = (
                _("A container of task %(task)s asks %(asked)s; the namespace allows it at most %(limit)s.")
                if container
                else _("A pod of task %(task)s asks %(asked)s; the namespace allows it at most %(limit)s.")
            )
            yield Note("bad", text % values, where)
        if resource in fewest and units < fewest[resource]:
            values["limit"] = quantity(fewest[resource], resource)
            text = (
                _("A container of task %(task)s asks %(asked)s; the namespace wants at least %(limit)s.")
                if container
                else _("A pod of task %(task)s asks %(asked)s; the namespace wants at least %(limit)s.")
            )
            yield Note("bad", text % values, where)
