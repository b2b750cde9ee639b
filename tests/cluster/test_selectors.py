"""Selectors, affinity, taints and durations: pure functions with Kubernetes's meaning."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.affinity import matches_node, preferred_weight, tolerates, untolerated
from cluster.durations import format_duration, parse_duration
from cluster.selectors import is_label_key, is_label_value, matches_selector, parse_field_selector, parse_selector

LABELS = {"app": "web", "tier": "front", "n": "5", "example.com/x": ""}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True), ("app=web", True), ("app==web", True), ("app = web , tier=front", True), ("app=db", False),
        ("app!=db", True), ("none!=x", True), ("app in (db, web)", True), ("app notin (db)", True), ("none notin (x)", True),
        ("app notin (web)", False), ("app", True), ("none", False), ("!none", True), ("! app", False), ("n>4", True),
        ("n<5", False), ("app>1", False), ("example.com/x", True), ("example.com/x=", True), ("app in (web),n", True),
    ],
)  # fmt: skip
def test_label_selectors_match(text: str, holds: bool) -> None:
    assert parse_selector(text).matches(LABELS) is holds


@pytest.mark.parametrize(
    "text", ["a=b,", ",", "a in ()x", "a in", "-a", "a=-", "a/b/c", "A_/x", "a=b=c", "(a)", "a" * 64, "x=" + "a" * 64]
)
def test_wrong_label_selectors_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="selector"):
        parse_selector(text)


@given(st.text(max_size=30))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    try:
        parse_selector(text).matches(LABELS)
    except ValueError as error:
        reason = str(error)
    else:
        reason = "selector"
    assert "selector" in reason


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from(["x", "y"]), min_size=1))
def test_a_selector_object_means_the_same_as_its_text(pairs: dict[str, str]) -> None:
    text = parse_selector(",".join(f"{k}={v}" for k, v in pairs.items()))
    expressions = [{"key": k, "operator": "In", "values": [v]} for k, v in pairs.items()]
    for labels in ({}, {"a": "x"}, {"a": "x", "b": "y"}, pairs):
        holds = text.matches(labels)
        assert matches_selector({"matchLabels": pairs}, labels) is holds
        assert matches_selector({"matchExpressions": expressions}, labels) is holds


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not matches_selector(None, LABELS)
    assert matches_selector({}, LABELS)
    assert not matches_selector({"matchExpressions": [{"key": "app", "operator": "Resembles", "values": ["w"]}]}, LABELS)


def test_field_selectors_compare_scalars_as_text() -> None:
    obj = {"spec": {"nodeName": "n1", "unschedulable": True}, "status": {}}
    assert parse_field_selector("spec.nodeName=n1,status.phase!=Running").matches(obj)
    assert parse_field_selector("spec.unschedulable=true").matches(obj)
    assert parse_field_selector("spec.none=").matches(obj)
    assert not parse_field_selector("spec.nodeName!=n1").matches(obj)
    with pytest.raises(ValueError, match="cannot be selected by"):
        parse_field_selector("spec.x=1", frozenset({"metadata.name"}))


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("a", True, True), ("A-b_c.d", True, True), ("", False, True), ("a/b", True, False), ("-a", False, False),
        ("a" * 63, True, True), ("a" * 64, False, False), ("é", False, False),
    ],
)  # fmt: skip
def test_label_grammar(text: str, key: bool, value: bool) -> None:
    assert (is_label_key(text), is_label_value(text)) == (key, value)


def affinity(*terms: Any, preferred: list[Any] | None = None) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)} if terms else None
    return {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": required,
                "preferredDuringSchedulingIgnoredDuringExecution": preferred or [],
            }
        }
    }


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def test_required_node_affinity_is_any_term_of_all_its_expressions() -> None:
    web, front = expression("app", "In", "web"), expression("tier", "In", "back")
    assert matches_node(affinity({"matchExpressions": [web]}), LABELS, "n1")
    assert not matches_node(affinity({"matchExpressions": [web, front]}), LABELS, "n1")
    assert matches_node(affinity({"matchExpressions": [front]}, {"matchExpressions": [web]}), LABELS, "n1")
    assert matches_node(affinity({"matchFields": [expression("metadata.name", "In", "n1")]}), LABELS, "n1")
    assert not matches_node(affinity({"matchFields": [expression("metadata.name", "In", "n2")]}), LABELS, "n1")
    assert not matches_node(affinity({}), LABELS, "n1")
    assert matches_node(affinity({"matchExpressions": [expression("n", "Gt", "4")]}), LABELS, "n1")


def test_a_node_selector_needs_every_label() -> None:
    assert matches_node({"nodeSelector": {"app": "web"}}, LABELS, "n")
    assert not matches_node({"nodeSelector": {"app": "web", "zone": "a"}}, LABELS, "n")
    assert matches_node({}, {}, "n")


def test_preferred_terms_add_their_weights() -> None:
    preferred = [
        {"weight": 3, "preference": {"matchExpressions": [expression("app", "In", "web")]}},
        {"weight": 5, "preference": {"matchExpressions": [expression("app", "In", "db")]}},
        {"weight": 7, "preference": {}},
    ]
    assert preferred_weight(affinity(preferred=preferred), LABELS, "n") == 10


@pytest.mark.parametrize(
    ("toleration", "holds"),
    [
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, True), ({"key": "k", "value": "v"}, True),
        ({"key": "k", "operator": "Exists"}, True), ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False), ({"key": "k"}, False), ({"value": "v"}, False),
        ({"key": "k", "value": "w"}, False), ({"key": "l", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Like", "value": "v"}, False),
    ],
)  # fmt: skip
def test_tolerations_cover_taints(toleration: dict[str, str], holds: bool) -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    assert tolerates(toleration, taint) is holds
    assert untolerated([toleration], [taint]) == ([] if holds else [taint])


def test_soft_taints_keep_nobody_away() -> None:
    assert untolerated(None, [{"key": "k", "effect": "PreferNoSchedule"}]) == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("30s", 30),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("250ms", 0.25),
        (".5s", 0.5),
        ("-2m", -120),
        ("1h1m1s", 3661),
        ("3us", 3e-6),
    ],
)
def test_durations_are_go_s(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "30", "s", "1 s", "1d", "1h-2m", "٣s", "1_0s", "inf", "1e3s", "9" * 30 + "h", "x" * 200])
def test_what_go_would_refuse_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@given(st.integers(-(10**9), 10**9))
def test_a_duration_that_is_written_is_read_back(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)
