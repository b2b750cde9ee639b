"""Inter-pod affinity and topology spreading over small clusters, by Kubernetes's rules."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest

from scheduler.plugins.kube import affinity, spread
from scheduler.plugins.kube.pods import Placed, PodKind, Topologies, narrowed

ZONE, HOST = "zone", "kubernetes.io/hostname"
# Three zones of two nodes, and one node that is in no zone.
NODES = Topologies([{ZONE: f"z{i // 2}", HOST: f"n{i}"} for i in range(6)] + [{HOST: "n6"}])
NAMES = [f"n{i}" for i in range(7)]
UNTAINTED: list[list[Any]] = [[] for _ in NAMES]


def pod(app: str = "web", spec: dict[str, Any] | None = None, namespace: str = "ns", **labels: str) -> PodKind:
    return PodKind(namespace, {"app": app, **labels}, spec or {})


def placed(kind: PodKind, *rows: int, leaving: tuple[int, ...] = ()) -> Placed:
    counts, staying = np.zeros(7, dtype=np.int64), np.zeros(7, dtype=np.int64)
    for row in rows:
        counts[row] += 1
        staying[row] += row not in leaving
    return Placed(kind, counts, staying)


def term(app: str, key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}


def required(kind: str, *terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def preferred(kind: str, weight: int, wanted: dict[str, Any]) -> dict[str, Any]:
    each = {"weight": weight, "podAffinityTerm": wanted}
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [each]}}}


def rows(mask: np.ndarray) -> list[int]:
    return np.flatnonzero(mask).tolist()


def test_affinity_keeps_a_pod_in_the_domains_of_the_pods_it_seeks() -> None:
    seeker = pod("job", required("podAffinity", term("db")))
    assert rows(affinity.allowed(seeker, [placed(pod("db"), 2)], NODES, {})) == [2, 3]
    assert rows(affinity.allowed(seeker, [placed(pod("db", namespace="other"), 2)], NODES, {})) == []
    assert rows(affinity.allowed(seeker, [], NODES, {})) == []


def test_pods_must_match_all_the_terms_at_once() -> None:
    seeker = pod(
        "job", required("podAffinity", term("db"), {**term("db", HOST), "labelSelector": {"matchLabels": {"tier": "1"}}})
    )
    apart = [placed(pod("db"), 0), placed(pod("other", tier="1"), 0)]
    assert rows(affinity.allowed(seeker, apart, NODES, {})) == []
    assert rows(affinity.allowed(seeker, [placed(pod("db", tier="1"), 0)], NODES, {})) == [0]


def test_the_first_pod_of_a_group_may_go_wherever_the_label_is() -> None:
    first = pod("web", required("podAffinity", term("web")))
    assert rows(affinity.allowed(first, [], NODES, {})) == [0, 1, 2, 3, 4, 5]
    assert rows(affinity.allowed(first, [placed(first, 5)], NODES, {})) == [4, 5]


def test_anti_affinity_binds_both_the_new_pod_and_those_that_are_there() -> None:
    shy = pod("shy", required("podAntiAffinity", term("web")))
    assert rows(affinity.allowed(shy, [placed(pod("web"), 0, 3)], NODES, {})) == [4, 5, 6]
    assert rows(affinity.allowed(pod("web"), [placed(shy, 1)], NODES, {})) == [2, 3, 4, 5, 6]
    assert rows(affinity.allowed(pod("db"), [placed(shy, 1)], NODES, {})) == [0, 1, 2, 3, 4, 5, 6]


def test_an_empty_namespace_selector_reaches_everywhere_and_a_narrow_one_asks_the_labels() -> None:
    everywhere = pod("job", required("podAntiAffinity", term("db", HOST, namespaceSelector={})))
    assert not affinity.allowed(everywhere, [placed(pod("db", namespace="far"), 3)], NODES, {})[3]
    narrow = pod("job", required("podAntiAffinity", term("db", HOST, namespaceSelector={"matchLabels": {"team": "a"}})))
    there = [placed(pod("db", namespace="far"), 3)]
    assert not affinity.allowed(narrow, there, NODES, {"far": {"team": "a"}})[3]
    assert affinity.allowed(narrow, there, NODES, {"far": {"team": "b"}})[3]


def test_match_label_keys_narrow_a_term_to_the_pods_own_value() -> None:
    assert narrowed({"matchLabels": {"app": "a"}}, {"rev": "7"}, ["rev", "none"], ["rev"]) == {
        "matchLabels": {"app": "a"},
        "matchExpressions": [
            {"key": "rev", "operator": "In", "values": ["7"]},
            {"key": "rev", "operator": "NotIn", "values": ["7"]},
        ],
    }
    shy = pod("web", required("podAntiAffinity", term("web", HOST, matchLabelKeys=["rev"])), rev="2")
    there = [placed(pod("web", rev="1"), 0), placed(pod("web", rev="2"), 1)]
    assert rows(affinity.allowed(shy, there, NODES, {})) == [0, 2, 3, 4, 5, 6]


def test_preferences_of_both_sides_add_up_by_domain() -> None:
    liker = pod("job", preferred("podAffinity", 10, term("db")))
    admirer = pod("fan", preferred("podAffinity", 5, term("job", HOST)))
    loner = pod("loner", preferred("podAntiAffinity", 7, term("job")))
    raw = affinity.preference(liker, [placed(pod("db"), 0, 0, 2), placed(admirer, 2), placed(loner, 5)], NODES, {})
    assert raw is not None
    assert raw.tolist() == [20, 20, 15, 10, -7, -7, 0]
    assert affinity.preference(pod("none"), [placed(pod("db"), 0)], NODES, {}) is None


def test_a_pod_is_concerned_by_its_own_terms_or_by_those_that_speak_of_it() -> None:
    shy = pod("shy", required("podAntiAffinity", term("web")))
    assert affinity.concerns(shy, [], {})
    assert affinity.concerns(pod("web"), [shy], {})
    assert not affinity.concerns(pod("db"), [shy], {})
    seeker = pod("job", required("podAffinity", term("web")))
    assert not affinity.concerns(pod("web"), [seeker], {}), "required affinity of others binds only when they are placed"


def constraint(key: str = ZONE, *, skew: int = 1, hard: bool = True, **more: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "web"}}
    when = "DoNotSchedule" if hard else "ScheduleAnyway"
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": when, "labelSelector": selector, **more}


def within(spec: dict[str, Any], there: list[Placed], app: str = "web", taints: list[list[Any]] = UNTAINTED) -> list[int]:
    kind = pod(app, spec)
    return rows(spread.within_skew(kind, spread.constraints(kind, hard=True), there, NODES, NAMES, taints))


def test_a_constraint_allows_what_keeps_the_skew() -> None:
    spec = {"topologySpreadConstraints": [constraint()]}
    assert within(spec, [placed(pod(), 0, 2)]) == [4, 5], "z0 and z1 have one, z2 none; the node in no zone is out"
    assert within(spec, [placed(pod(), 0, 2, 4)]) == [0, 1, 2, 3, 4, 5]
    assert within({"topologySpreadConstraints": [constraint(skew=2)]}, [placed(pod(), 0, 0, 2)]) == [2, 3, 4, 5]
    assert within(spec, [placed(pod(), 0, 2)], app="other") == [0, 1, 2, 3, 4, 5], "a pod that it does not select adds nothing"


def test_pods_that_leave_or_live_elsewhere_do_not_count() -> None:
    spec = {"topologySpreadConstraints": [constraint()]}
    assert within(spec, [placed(pod(), 0, 2, leaving=(0,))]) == [0, 1, 4, 5]
    assert within(spec, [placed(pod(namespace="far"), 0, 2)]) == [0, 1, 2, 3, 4, 5]


def test_fewer_domains_than_wanted_count_the_emptiest_as_none() -> None:
    there = [placed(pod(), 0, 2, 4)]
    assert within({"topologySpreadConstraints": [constraint(minDomains=4)]}, there) == []
    assert within({"topologySpreadConstraints": [constraint(minDomains=3)]}, there) == [0, 1, 2, 3, 4, 5]


def test_domains_are_those_of_nodes_that_the_pod_may_use() -> None:
    spec = {"nodeSelector": {ZONE: "z1"}, "topologySpreadConstraints": [constraint()]}
    assert {2, 3} <= set(within(spec, [placed(pod(), 2)])), "z1 is then the only domain and so the emptiest"
    ignored = {"nodeSelector": {ZONE: "z1"}, "topologySpreadConstraints": [constraint(nodeAffinityPolicy="Ignore")]}
    assert not {2, 3} & set(within(ignored, [placed(pod(), 2)]))
    taints = [[{"key": "down", "effect": "NoSchedule"}] if i // 2 == 2 else [] for i in range(7)]
    honor = {"topologySpreadConstraints": [constraint(nodeTaintsPolicy="Honor")]}
    assert {0, 1, 2, 3} <= set(within(honor, [placed(pod(), 0, 2)], taints=taints))
    assert within({"topologySpreadConstraints": [constraint()]}, [placed(pod(), 0, 2)], taints=taints) == [4, 5]


def test_evenness_prefers_the_emptiest_domain() -> None:
    kind = pod("web", {"topologySpreadConstraints": [constraint(hard=False)]})
    asked = spread.constraints(kind, hard=False)
    assert spread.constraints(kind, hard=True) == ()
    there = [placed(pod(), 0, 1, 2)]
    everyone = np.ones(7, dtype=bool)
    even = spread.evenness(kind, asked, there, NODES, everyone, NAMES, UNTAINTED)
    # Three domains: weight ln 5 = 1.609…; 2 → 3, 1 → 2, 0 → 0 rounded; 100·(3 + 0 − raw)/3; no zone: 0.
    assert [round(2 * log(5)), round(log(5))] == [3, 2]
    assert even.tolist() == [0, 0, 33, 33, 100, 100, 0]


def test_evenness_over_hosts_counts_each_node_by_itself() -> None:
    kind = pod("web", {"topologySpreadConstraints": [constraint(HOST, skew=2, hard=False)]})
    candidates = np.array([True, True, True, False, False, False, True])
    asked = spread.constraints(kind, hard=False)
    even = spread.evenness(kind, asked, [placed(pod(), 0, 0, 1)], NODES, candidates, NAMES, UNTAINTED)
    # Four candidates: ln 6 = 1.79; 2·1.79 + 1 = 4.58 → 5, 1.79 + 1 = 2.79 → 3, 1: 100·(5 + 1 − raw)/5.
    assert even.tolist() == [20, 60, 100, 0, 0, 0, 100]


def test_nothing_to_count_makes_all_alike() -> None:
    kind = pod("web", {"topologySpreadConstraints": [constraint(hard=False)]})
    even = spread.evenness(kind, spread.constraints(kind, hard=False), [], NODES, np.ones(7, dtype=bool), NAMES, UNTAINTED)
    assert even.tolist() == [100] * 6 + [0]


@pytest.mark.parametrize("key", [ZONE, HOST, "rack"])
def test_totals_are_sums_over_domains(key: str) -> None:
    counts = np.arange(7, dtype=np.int64)
    expected = []
    for labels in NODES.node_labels:
        same = [i for i, other in enumerate(NODES.node_labels) if key in labels and other.get(key) == labels[key]]
        expected.append(sum(int(counts[i]) for i in same))
    assert NODES.totals(key, counts).tolist() == expected
