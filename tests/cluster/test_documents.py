"""Manifests from outside: kubectl's reading, lines, limits, and no text that does harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cluster.documents import dump, load
from cluster.errors import BadRequest


def only(text: str | bytes, **limits: int) -> dict[str, Any]:
    (document,) = load(text, **limits)
    return document.obj


def refusal(text: str | bytes, **limits: int) -> str:
    with pytest.raises(BadRequest) as caught:
        load(text, **limits)
    assert caught.value.fields[0].message == caught.value.message
    return caught.value.message


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("yes", True), ("Off", False), ("y", True), ("true", True), ("~", None), ("null", None), ("NULL", None), ("Null", None),
        ("", None), ("1", 1),
        ("-7", -7), ("0777", 511), ("0o17", 15), ("0x1F", 31), ("0b101", 5), ("1_000", 1000), ("08", 8), ("1e3", 1000),
        ("0.5", 0.5), ("1.0", 1), ("'1'", "1"), ('"yes"', "yes"), ("1:30", "1:30"), ("2020-01-01", "2020-01-01"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"), ("500m", "500m"), ("1.2.3", "1.2.3"),
        ("18446744073709551615", 2**64 - 1),
        ("!!str 1", "1"), ("!!int 1", 1), ("nope", "nope"), ("=", "="), ("-", [None]),
    ],
)  # fmt: skip
def test_scalars_mean_what_they_mean_to_kubectl(scalar: str, value: object) -> None:
    found = only(f"a: {scalar}\n" if scalar != "-" else "a:\n-\n")["a"]
    assert found == value
    assert type(found) is type(value)


def test_documents_are_numbered_and_empty_ones_skipped() -> None:
    documents = load("# nothing\n---\na: 1\n---\n---\nb: 2\n...\n")
    assert [(d.index, d.document, d.obj) for d in documents] == [(0, 1, {"a": 1}), (1, 3, {"b": 2})]


def test_lists_are_taken_apart_and_keep_their_lines() -> None:
    text = "kind: List\nitems:\n- a: 1\n- kind: List\n  items:\n  - b:\n      c: 2\n"
    first, second = load(text)
    assert (first.obj, second.obj) == ({"a": 1}, {"b": {"c": 2}})
    assert (first.line_of("/a"), second.line_of("/b/c"), second.line_of("")) == (3, 7, 6)


def test_every_field_has_its_line_or_that_of_what_is_around_it() -> None:
    (document,) = load("a:\n  b/c:\n  - x: 1\n\n    z: 2\n  d~: {e: 3}\n")
    assert document.line_of("/a/b~1c/0/z") == 5
    assert document.line_of("/a/d~0/e") == 6
    assert document.line_of("/a/b~1c/0/none/deeper") == 3
    assert document.line_of("") == 1


def test_anchors_and_merge_keys_work_and_share_nothing() -> None:
    obj = only("base: &b {x: 1, w: 2}\nuse:\n  <<: *b\n  w: 3\nagain: *b\nboth: {<<: [*b, {z: 9}]}\n'<<': text\n")
    assert obj == {
        "base": {"x": 1, "w": 2}, "use": {"x": 1, "w": 3}, "again": {"x": 1, "w": 2},
        "both": {"x": 1, "w": 2, "z": 9}, "<<": "text",
    }  # fmt: skip
    obj["again"]["x"] = 5
    assert obj["base"]["x"] == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no object"),
        ("# only\n---\n", "there is no object"),
        ("- 1\n", "document 1, line 1: an object is a mapping with apiVersion and kind, this is a list"),
        ("a: 1\n---\nhello\n", "document 2, line 3: an object is a mapping with apiVersion and kind, this is text"),
        ("a: 1\nb: 2\na: 3\n", "document 1, line 3: the key 'a' was given before, on line 1"),
        ("on: 1\n", "line 1: a key must be text; this one is read as true: put it in quotes"),
        ("1.5: 1\n", "line 1: a key must be text; this one is read as 1.5"),
        ("? [a]\n: 1\n", "line 1: a key must be text, not a collection"),
        ("a: [\n", "not valid YAML"),
        ("a: b: c\n", "line 1: not valid YAML"),
        ("\ta: 1\n", "line 1: not valid YAML"),
        ("a: *x\n", "line 1: the alias *x has no anchor before it"),
        ("a: &x [*x]\n", "line 1: the alias *x refers to what it stands in"),
        ("a: !!python/object/apply:os.system [id]\n", "is not taken; write plain values"),
        ("a: !!binary aGk=\n", "is not taken; write plain values"),
        ("a: !!int x\n", "'x' is not what its tag"),
        ("a: .inf\n", "no number that JSON can carry"),
        ("a: {<<: 1}\n", "what << merges must be a mapping"),
        ("kind: List\n", "a List has its objects under items"),
        ("kind: List\nitems: [1]\n", "document 1, line 2: an object is a mapping"),
        (b"a: \xff\n", "line 1: the text is not UTF-8"),
        ("a: \x00\n", "not valid YAML"),
        ('{"a": 1, "a": 2}', "the key 'a' was given before"),
        ('{"\\ud83d\\ude00": 1, "a": 2, "a": 3}', "the key 'a' is given twice"),
        ('{"a": "\\ud83d"}', "half of a surrogate pair"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_place(text: str | bytes, says: str) -> None:
    assert says in refusal(text)


def test_size_depth_and_growth_are_bounded() -> None:
    assert "at most 1048576 are read" in refusal("a: " + "x" * 1_100_000)
    assert "at most 10 are read" in refusal("a: " + "é" * 10, limit=10)
    assert "nested" in refusal("a: " + "[" * 150 + "]" * 150)
    assert "nesting" in refusal("[" * 100_000)
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 12))
    assert "unfolds to more than 200000 values" in refusal("l0: &l0 [x]\n" + levels)
    assert "unfolds to more than 5 values" in refusal("a: [1, 2, 3, 4, 5]", most=5)


def test_json_is_read_too_several_in_a_row_and_with_surrogate_pairs() -> None:
    assert only('{"a": [1, 2.5, true, null, "x"]}') == {"a": [1, 2.5, True, None, "x"]}
    assert [d.obj for d in load('{"a": "\\ud83d\\ude00"}\n{"b": 1}')] == [{"a": "😀"}, {"b": 1}]


TEXT = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(alphabet="abcxyz", min_size=2, max_size=5), JSON, min_size=1, max_size=4))
def test_whatever_json_says_is_read_as_json_says_it(obj: dict[str, Any]) -> None:
    assert only(json.dumps(obj)) == obj


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20))
@example("a\n\x85b")
@example("\u2028")
def test_what_is_written_is_read_as_it_was(text: str) -> None:
    assert only(dump({"a": text, "b": [text]})) == {"a": text, "b": [text]}


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    try:
        documents = load(text)
    except BadRequest as error:
        assert error.fields  # noqa: PT017 - the other branch is as good
    else:
        assert all(isinstance(document.obj, dict) for document in documents)


def test_every_real_manifest_is_read(shared_dir: Path) -> None:
    for path in sorted((shared_dir / "data/manifests").glob("*.yaml")):
        for document in load(path.read_bytes()):
            assert {"apiVersion", "kind"} <= set(document.obj), path.name
            assert document.line_of("/kind"), path.name


@pytest.mark.parametrize("text", ['a:\n  b: "x\\0y"', '{"a": {"b": "x\\u0000y"}}', '{"a\\u0000": 1, "b": "\\ud83d\\ude00"}'])
def test_no_text_holds_a_nul_character(text: str) -> None:
    assert "a text holds a NUL character" in refusal(text)


def test_a_nul_character_is_told_with_its_place() -> None:
    with pytest.raises(BadRequest) as caught:
        load('a:\n  b: "x\\0y"')
    assert caught.value.fields[0].pointer == "/a/b"
    assert "line 2" in caught.value.message
