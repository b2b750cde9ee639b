"""Verdicts as kubectl shows them, in English; and the same as a Chinese page has them."""

from __future__ import annotations

import pytest
from django.utils import translation

from cluster.said import Said, packed, unpacked, words
from scheduler.framework.explain import Code, Spared, Stage, Verdict
from scheduler.wording import _CAUSES, _SPARED, describe
from tests.portal.test_one_language import SENTENCE


def verdict(code: Code, stage: Stage = Stage.NODE_FIT, **values: object) -> Verdict:
    facts: dict[str, object] = {
        "queue": "research", "resource": "nvidia.com/gpu", "asked": 8000, "free": 3000, "limit": 16000, "needed": 8,
        "placeable": 3, "nodes": 12, "tier": 2, "domain": "s1", "candidates": 4,
        "rejected": {**dict.fromkeys(_CAUSES, 1), "insufficient:cpu": 2}, "spared": dict.fromkeys(_SPARED, 1),
    }  # fmt: skip
    return Verdict(stage, code, **{**facts, **values})  # type: ignore[arg-type]


@pytest.mark.parametrize("code", Code)
@pytest.mark.parametrize(
    "values", [{}, {"resource": "", "limit": 0, "domain": "", "placeable": 0}, {"rejected": {}, "queue": "root"}]
)
@pytest.mark.parametrize("stage", [Stage.NODE_FIT, Stage.QUEUE_LIMIT])
def test_every_verdict_is_said_in_chinese_too(code: Code, values: dict[str, object], stage: Stage):
    told = describe(verdict(code, stage, **values))
    back = unpacked(packed(told), str(told))
    with translation.override("zh-hans"):
        found = words(told)
        assert isinstance(told, Said)
        assert SENTENCE.search(found) is None
        assert any("一" <= letter <= "鿿" for letter in found)
        assert not packed(told) or words(back) == found


def test_nodes_are_counted_by_the_cause_that_refuses_them():
    told = describe(verdict(Code.NODES_INSUFFICIENT, rejected={"insufficient:nvidia.com/gpu": 9, "taint": 3}, placeable=0))
    assert told == "0/12 nodes are available: 9 Insufficient nvidia.com/gpu, 3 node(s) had an untolerated taint"
    with translation.override("zh-hans"):
        assert words(told) == "12 个节点均不可用：9 个节点 nvidia.com/gpu 不足，3 个节点有未容忍的污点"


def test_whoever_stays_is_counted_by_the_rule_that_spares_him():
    told = describe(verdict(Code.NO_VICTIMS, rejected={"taint": 12}, placeable=0, spared={Spared.HIGHER_PRIORITY: 2, "gang": 2}))
    assert told == (
        "0/12 nodes are available: 12 node(s) had an untolerated taint; no eviction makes room: 4 pods were looked at, "
        "2 are needed by their gangs, 2 are of higher priority"
    )
    with translation.override("zh-hans"):
        assert "2 个优先级更高" in words(told)
