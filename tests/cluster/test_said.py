"""Sentences are kept beside their text, and say the same in every language when they are read again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from cluster.events import LONGEST_MESSAGE, SAID, event_about
from cluster.said import LONGEST, Said, in_each_language, packed, said, unpacked, words
from tests.portal.test_one_language import SENTENCE

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u"}}
INNER = said("created job %(name)s", name="a")
VALUES = st.one_of(
    st.text(max_size=20), st.integers(), st.just(INNER), st.lists(st.just(INNER), max_size=3).map(tuple), st.lists(st.just(INNER))
)


def again(text: str) -> str:
    return unpacked(packed(text), str(text))


@given(VALUES, VALUES)
def test_what_is_packed_comes_back_with_its_text_and_its_values(pod: Any, error: Any):
    told = said("pod %(pod)s: %(error)s", pod=pod, error=error)
    back = again(told)
    assert back == told
    assert not packed(told) or isinstance(back, Said)
    with translation.override("zh-hans"):
        assert words(back) == (words(told) if packed(told) else told)


def test_parts_and_sentences_are_joined_as_the_language_does_it():
    told = said("%(refused)s", refused=(said("%(jobs)s: no more jobs are started", jobs=[INNER, INNER]), INNER))
    assert told == "created job a, created job a: no more jobs are started; created job a"
    assert in_each_language(again(told)) == {
        "en": str(told),
        "zh-hans": "已创建作业 a，已创建作业 a：不再启动其他作业；已创建作业 a",
    }
    assert in_each_language("of somebody else") == {"en": "of somebody else"}


@pytest.mark.parametrize(
    "found",
    [
        "", "x", "1", "[]", "{}", '{"a": {}, "b": {}}', '{"other text": {}}', '{"%(a)9999999999s": {"a": "x"}}',
        '{"%(a)*d": {"a": 1}}',
        '{"%(a)s": {}}', '{"%(a)s": {"a": {"%(a)99999999s": {"a": ""}}}}', '{"%(a)s": 1}', "[" * 3000,
        "9" * 4000, "x" * (LONGEST + 1),
        json.dumps({"%(a)s": {"a": ["x", *["y"] * 3]}}),
    ],
)  # fmt: skip
def test_what_is_no_sentence_that_says_just_this_is_no_sentence(found: str):
    assert unpacked(found, "the text") == "the text"
    assert not isinstance(unpacked(found, "the text"), Said)


def test_a_sentence_that_is_too_long_is_a_text_only():
    told = said("created job %(name)s", name="x" * LONGEST)
    assert packed(told) == ""
    assert again(told) == told


def test_an_event_carries_its_template_and_kubectl_reads_english():
    with translation.override("zh-hans"):
        event = event_about(NODE, "Normal", "Created", INNER, stamp="t", component="c")
    assert event["message"] == "created job a"
    assert type(event["message"]) is str
    assert json.loads(event["metadata"]["annotations"][SAID]) == {"created job %(name)s": {"name": "a"}}
    foreign = event_about(NODE, "Normal", "Created", "by hand", stamp="t", component="c")
    assert "annotations" not in foreign["metadata"]
    long = said("created job %(name)s", name="x" * LONGEST_MESSAGE)
    cut = event_about(NODE, "Normal", "Created", long, stamp="t", component="c")
    assert not isinstance(unpacked(cut["metadata"]["annotations"][SAID], cut["message"]), Said)


def test_the_check_for_english_sees_some():
    assert SENTENCE.search("there is no room at all")
