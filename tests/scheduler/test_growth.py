"""What comes and goes leaves nothing behind: a scheduler that runs for weeks knows as much as one that has just begun."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType

import numpy as np
import pytest

from cluster.kinds import by_api
from cluster.port import Obj, WatchEvent
from scheduler.dynamic import catalog
from scheduler.eviction import taker
from scheduler.model import nodes
from scheduler.placement import oversize, standing
from scheduler.snapshot import Offline, Snapshot
from scheduler.volumes import places
from tests.scheduler.claims.make import (
    claim,
    device_class,
    mounting,
    obj,
    request,
    resource_claim,
    slice_of,
    storage_class,
    using,
    volume,
)
from tests.scheduler.world import CONF, gang, group, node, queue

EVICTING = CONF.replace("backfill", "backfill, preempt, reclaim")
LATER = CONF.replace("  - name: nodeorder\n", "  - name: nodeorder\n  - name: task-topology\n  - name: numa-aware\n")
WARM_UP, ROUNDS = 10, 25
Round = Callable[[str], list[Obj]]


def entries(root: object) -> Counter[str]:
    """How many entries the containers have that can be reached from an object, by the attributes on the way to them."""
    seen, waiting, found = set[int](), [("", root)], Counter[str]()
    while waiting:
        place, each = waiting.pop()
        if id(each) in seen or isinstance(each, (type, str, bytes, int, float, FunctionType, MethodType, np.ndarray)):
            continue
        seen.add(id(each))
        if isinstance(each, Mapping):
            found[place] += len(each)
            named = place.endswith(".memo")  # each thing in it is of a kind of its own
            waiting += [(f"{place}[{key if named else ''}]", part) for key, value in each.items() for part in (key, value)]
        elif isinstance(each, (list, set, frozenset, deque, tuple)):
            found[place] += len(each)
            waiting += [(f"{place}[]", part) for part in each]
        else:
            slots = (name for kind in type(each).__mro__ for name in getattr(kind, "__slots__", ()))
            names = [*getattr(each, "__dict__", ()), *slots]
            waiting += [(f"{place}.{name}", getattr(each, name)) for name in names if hasattr(each, name)]
    return found


def plain(name: str) -> list[Obj]:
    return [queue(f"q-{name}"), *gang(name, 3, queue=f"q-{name}"), *gang(f"{name}-huge", 1, cpu=99)]


def waiting(name: str) -> list[Obj]:
    return gang(name, 9, cpu=4)


def with_volumes(name: str) -> list[Obj]:
    held = volume(f"pv-{name}", claimRef={"namespace": "default", "name": f"mine-{name}"})
    claims = [claim(f"mine-{name}"), claim(f"made-{name}")]
    return [held, *claims, *gang(name, 1, pod_spec=mounting(f"mine-{name}", f"made-{name}"))]


def with_devices(name: str) -> list[Obj]:
    asked = request("req", 1, "gpu", f'"{name}" != device.driver')
    return [resource_claim(f"dev-{name}", asked), *gang(name, 1, pod_spec=using(f"dev-{name}"))]


def malformed(name: str) -> list[Obj]:
    broken = group(name, 1)
    broken["spec"]["minMember"] = "one"
    return [broken, volume(f"pv-{name}", size="much"), obj("scheduling.k8s.io/v1", "PriorityClass", name, value="high")]


def misnamed_roles(name: str) -> list[Obj]:
    found = gang(name, 1)
    found[0]["metadata"]["annotations"] = {"volcano.sh/task-topology-affinity": "nobody"}
    return found


@pytest.mark.parametrize("conf", [EVICTING, LATER], ids=["evicting", "later"])
@pytest.mark.parametrize("made", [plain, waiting, with_volumes, with_devices, malformed, misnamed_roles])
def test_what_is_gone_is_forgotten(made: Round, conf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = (oversize, "_CLASSES"), (taker, "MANY"), (catalog, "_MOST_ANSWERS"), (places, "_SPARE"), (standing, "_SPARE")
    for module, bound in bounds:
        monkeypatch.setattr(module, bound, 8)
    monkeypatch.setattr(nodes, "_LOG_LIMIT", 32)
    base = [node("n0"), node("n1"), queue("default"), storage_class("fast"), device_class(), slice_of("n0"), slice_of("n1")]
    offline = Offline(Snapshot.of(base, conf))
    _most(offline, made, range(WARM_UP))
    before = _most(offline, made, range(WARM_UP, WARM_UP + ROUNDS))
    after = _most(offline, made, range(WARM_UP + ROUNDS, WARM_UP + 2 * ROUNDS))
    assert after - before == Counter()


def _most(offline: Offline, made: Round, rounds: range) -> Counter[str]:
    """The most entries of each place after any of some rounds: what is swept now and then has its turn in them."""
    most = Counter[str]()
    for number in rounds:
        _come_and_go(offline, made(f"job{number}"))
        most |= entries([offline.cache, offline._keeper])
    return most


def _come_and_go(offline: Offline, objects: list[Obj]) -> None:
    estate = offline.cache.estate
    for each in objects:
        offline.cache.apply(WatchEvent("ADDED", by_api(each["apiVersion"], each["kind"]), each))
    for _ in range(3):
        offline.cycle()
    made = [volume for volume in estate.storage.volumes("fast") if volume not in objects]
    for each in [*objects, *made]:
        offline.cache.apply(WatchEvent("DELETED", by_api(each["apiVersion"], each["kind"]), each))
    for _ in range(3):
        offline.cycle()
