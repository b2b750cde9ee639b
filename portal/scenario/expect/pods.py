"""Pods that run or wait, and what happened to them in the whole case."""

from __future__ import annotations

from collections import Counter

from cluster import objects
from cluster.kinds import POD
from portal.scenario.expect.base import check, compare, differ, in_span, sets
from portal.scenario.world import World


@check
def running(world: World, value: dict[str, int]) -> list[str]:
    """Running pods of jobs, or of their tasks."""
    return compare("running", value, lambda name: len(world.running(name)))


@check
def running_at_least(world: World, value: dict[str, int]) -> list[str]:
    """A lower bound."""
    return [m for name, n in value.items() for m in in_span(f"running {name}", {"min": n}, len(world.running(name)))]


@check
def running_at_most(world: World, value: dict[str, int]) -> list[str]:
    """An upper bound."""
    return [m for name, n in value.items() for m in in_span(f"running {name}", {"max": n}, len(world.running(name)))]


@check
def running_total(world: World, value: dict[str, int]) -> list[str]:
    """Over all jobs of one submit_many."""

    def total(name: str) -> int:
        names = {f"{name}-{index}" for index in range(world.many.get(name, 0))}
        return sum(world.job_of(pod) in names for pod in world.running())

    return compare("running in total", value, total)


@check
def running_by_queue(world: World, value: dict[str, int]) -> list[str]:
    """By the queue of their jobs."""
    found = Counter(world.queue_of(pod) for pod in world.running())
    return compare("running in queue", value, lambda name: found[name])


@check
def running_pods(world: World, value: list[str]) -> list[str]:
    """The plain pods that run, exactly these."""
    plain = {objects.name(pod) for pod in world.running() if objects.owner(pod) is None}
    return differ("plain pods that run", set(value), plain)


@check
def pending(world: World, value: list[str]) -> list[str]:
    """Pods that exist and have no node."""
    waiting = {objects.name(pod) for pod in world.pods() if not pod["spec"].get("nodeName")}
    there = {objects.name(pod) for pod in world.pods()}
    return [f"pod {name} {'has a node' if name in there else 'does not exist'}" for name in value if name not in waiting]


@check
def pending_count(world: World, value: dict[str, int]) -> list[str]:
    """Their number by job."""
    return compare("pending", value, lambda name: sum(not pod["spec"].get("nodeName") for pod in world.pods(name)))


@check
def bound_count(world: World, value: int) -> list[str]:
    """Bindings in the whole case."""
    return differ("bindings", value, len(world.history.bound))


@check
def evicted(world: World, value: list[str]) -> list[str]:
    """Pods evicted by the scheduler in the whole case, exactly these."""
    return differ("evicted", set(value), {each.pod for each in world.history.evictions})


@check
def evicted_count(world: World, value: int) -> list[str]:
    """Their number."""
    return differ("evictions", value, len(world.history.evictions))


@check
def evictions_in_last(world: World, value: dict[str, int]) -> list[str]:
    """Evictions in the last so many cycles."""
    since = world.cycles - value["cycles"]
    seen = sum(each.cycle > since for each in world.history.evictions)
    return differ(f"evictions in the last {value['cycles']} cycles", value["count"], seen)


@check
def whole_gangs_evicted(world: World, value: int) -> list[str]:
    """Jobs that lost all pods by eviction, while no other job fell below its minimum by it."""
    whole, broken = world.gangs_evicted()
    return differ("whole gangs evicted", value, len(whole)) + [f"gang {name} was broken by evictions" for name in sorted(broken)]


@check
def job_admitted(world: World, value: list[str]) -> list[str]:
    """Jobs whose PodGroup has left the phase Pending."""
    return [f"{name} was not admitted" for name in value if name not in world.history.admitted]


@check
def job_not_admitted(world: World, value: list[str]) -> list[str]:
    """Jobs whose PodGroup has never left it."""
    return [f"{name} was admitted" for name in value if name in world.history.admitted]


@check
def pods_created(world: World, value: dict[str, int]) -> list[str]:
    """Pods ever made."""
    return compare("pods made of", value, lambda name: len(world.history.pods_made.get(name, ())))


@check
def pods(world: World, value: dict[str, list[str]]) -> list[str]:
    """Pods that exist now, in any phase."""
    return sets("pods of", value, lambda name: [objects.name(pod) for pod in world.pods(name)])


@check
def pod_replaced(world: World, value: list[str]) -> list[str]:
    """Pods that are others than those that first ran under their names."""
    return [f"pod {name} {said}" for name in value if (said := _replaced(world, name)) != "was replaced"]


@check
def pod_not_replaced(world: World, value: list[str]) -> list[str]:
    """Pods that are still the same."""
    return [f"pod {name} {said}" for name in value if (said := _replaced(world, name)) != "is the same"]


def _replaced(world: World, name: str) -> str:
    pod, first = world.find(POD, name), world.history.first_ran.get(name)
    if pod is None:
        return "does not exist"
    if first is None:
        return "never ran"
    return "is the same" if objects.uid(pod) == first else "was replaced"
