"""Patches against the examples and laws of their RFCs."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.embedded.patches import apply, json_patch, merge
from cluster.errors import BadRequest, Invalid

VALUE = st.recursive(
    st.booleans() | st.integers(0, 3) | st.text(alphabet="ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECT = st.dictionaries(st.sampled_from("abc"), VALUE, max_size=3)


def difference(before: Any, after: Any) -> Any:
    """The merge patch that leads from one object to another."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    gone = {key: None for key in before if key not in after}
    return gone | {
        key: difference(before.get(key), value) for key, value in after.items() if before.get(key) != value or key not in before
    }


@given(OBJECT, OBJECT)
def test_a_merge_patch_leads_to_its_end_and_changes_nothing_in_place(before: Any, after: Any) -> None:
    kept = copy.deepcopy(before)
    assert merge(before, difference(before, after)) == after
    assert before == kept


# The test cases of RFC 7396, appendix A, over objects.
@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}), ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}), ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}), ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}), ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}), ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)  # fmt: skip
def test_merge_patches_of_the_rfc(target: Any, patch: Any, result: Any) -> None:
    assert merge(target, patch) == result


@pytest.mark.parametrize(
    ("target", "operation", "result"),
    [
        ({"foo": "bar"}, {"op": "add", "path": "/baz", "value": "qux"}, {"foo": "bar", "baz": "qux"}),
        ({"foo": ["bar", "baz"]}, {"op": "add", "path": "/foo/1", "value": "qux"}, {"foo": ["bar", "qux", "baz"]}),
        ({"foo": ["bar"]}, {"op": "add", "path": "/foo/-", "value": ["a"]}, {"foo": ["bar", ["a"]]}),
        ({"foo": [1, 2]}, {"op": "add", "path": "/foo/2", "value": 3}, {"foo": [1, 2, 3]}),
        ({"baz": "qux", "foo": "bar"}, {"op": "remove", "path": "/baz"}, {"foo": "bar"}),
        ({"foo": ["a", "b", "c"]}, {"op": "remove", "path": "/foo/1"}, {"foo": ["a", "c"]}),
        ({"baz": "qux"}, {"op": "replace", "path": "/baz", "value": "boo"}, {"baz": "boo"}),
        ({"foo": ["a", "b"]}, {"op": "replace", "path": "/foo/0", "value": "z"}, {"foo": ["z", "b"]}),
        (
            {"foo": {"bar": 1}, "qux": {}},
            {"op": "move", "from": "/foo/bar", "path": "/qux/thud"},
            {"foo": {}, "qux": {"thud": 1}},
        ),
        ({"foo": ["a", "b", "c"]}, {"op": "move", "from": "/foo/0", "path": "/foo/2"}, {"foo": ["b", "c", "a"]}),
        ({"a": {"b": 1}}, {"op": "copy", "from": "/a", "path": "/c"}, {"a": {"b": 1}, "c": {"b": 1}}),
        ({"~1": 10}, {"op": "test", "path": "/~01", "value": 10}, {"~1": 10}),
        ({"a/b": {"c": 1}}, {"op": "remove", "path": "/a~1b/c"}, {"a/b": {}}),
        ({"a": 1}, {"op": "add", "path": "", "value": {"b": 2}}, {"b": 2}),
    ],
)
def test_json_patches_of_the_rfc(target: Any, operation: Any, result: Any) -> None:
    kept = copy.deepcopy(target)
    assert json_patch(target, [operation]) == result
    assert target == kept


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2}, {"op": "test", "path": "/t", "value": 1}, {"op": "remove", "path": "/none"},
        {"op": "replace", "path": "/none", "value": 1}, {"op": "add", "path": "/none/deep", "value": 1},
        {"op": "add", "path": "/list/5", "value": 1}, {"op": "add", "path": "/list/01", "value": 1},
        {"op": "remove", "path": "/list/-"}, {"op": "remove", "path": ""}, {"op": "add", "path": "", "value": 1},
        {"op": "move", "from": "/o", "path": "/o/in"}, {"op": "remove", "path": "/list/١"},
        {"op": "add", "path": "/a/b", "value": 1},
    ],
)  # fmt: skip
def test_json_patches_that_do_not_fit_are_invalid(operation: Any) -> None:
    with pytest.raises(Invalid):
        json_patch({"a": 1, "t": True, "list": [1], "o": {}}, [operation])


@pytest.mark.parametrize(
    "operations",
    [{}, "x", [1], [{}], [{"op": "jump", "path": "/a"}], [{"op": "add", "path": "/a"}], [{"op": "move", "path": "/a"}],
     [{"op": "remove", "path": "a"}], [{"op": "remove", "path": 1}]],
)  # fmt: skip
def test_what_is_no_json_patch_is_a_bad_request(operations: Any) -> None:
    with pytest.raises(BadRequest):
        json_patch({"a": 1}, operations)


def spec(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "spec": fields}


def test_what_a_manager_no_longer_applies_goes_unless_another_applies_it() -> None:
    first = apply(None, spec(a=1, b={"c": 2, "d": 3}, e=4), "one")
    both = apply(first, spec(e=4), "two")
    less = apply(both, spec(b={"c": 2}), "one")
    assert less["spec"] == {"b": {"c": 2}, "e": 4}


def test_what_nobody_applied_stays() -> None:
    first = apply(None, spec(a=1), "one")
    first["spec"]["other"] = {"x": 1}
    assert apply(first, spec(b=2), "one")["spec"] == {"b": 2, "other": {"x": 1}}


@given(OBJECT, OBJECT)
def test_applying_again_changes_nothing(before: Any, wanted: Any) -> None:
    once = apply(spec(**before), spec(**wanted), "m")
    assert apply(once, spec(**wanted), "m") == once
