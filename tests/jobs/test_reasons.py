"""Verdicts in words."""

from __future__ import annotations

import pytest
from django.utils import translation

from jobs import reasons
from scheduler.framework.explain import Code, Spared, Stage, Verdict

GPU = "nvidia.com/gpu"
FULL = Verdict(
    stage=Stage.NODE_FIT, code=Code.NODES_INSUFFICIENT, queue="lab", task="worker", resource=GPU, asked=8000, free=5000,
    short=3000, limit=80_000, needed=8, placeable=5, nodes=32, rejected={"selector": 16, f"insufficient:{GPU}": 9},
)  # fmt: skip


def of(**changes) -> dict:
    return FULL.as_dict() | changes


@pytest.mark.parametrize("code", list(Code))
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_code_has_a_sentence_a_headline_and_advice(code: Code, language: str):
    with translation.override(language):
        for text in (reasons.say(of(code=code)), reasons.headline(of(code=code))[0], reasons.advice(of(code=code))):
            assert text
            assert "%(" not in text


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "5 of 8 pods fit; the next asks 8 GPUs, the best node has 5"),
        ({"needed": 1}, "Its pod asks 8 GPUs, the best node has 5 free"),
        ({"short": 0}, "5 of 8 pods fit"),
        ({"code": "queue.closed"}, "Queue lab is closed"),
        ({"code": "queue.capability", "asked": 24_000, "free": 16_000}, "Queue limit: asks 24 GPUs, 16 of 80 left"),
        (
            {"code": "queue.capability", "stage": "admission", "resource": "cpu", "asked": 200_000, "limit": 128_000},
            "Impossible: asks 200 CPUs, queue lab may use 128 at most",
        ),
        (
            {"code": "topology.no_domain", "stage": "topology", "tier": 2, "domain": "s1"},
            "5 of 8 pods fit into network domain s1, the best up to tier 2",
        ),
        ({"code": "topology.no_domain", "stage": "topology", "tier": 2}, "No network domain of tier 2 or below takes it"),
        (
            {"code": "overcommit", "resource": "cpu", "asked": 1_536_000, "free": 1500, "limit": 2_000_000},
            "Admission: asks 1,536 CPUs, room for 1.5",
        ),
        (
            {"code": "overcommit", "resource": "cpu", "asked": 320_000, "free": 1500, "limit": 230_400},
            "Impossible: asks 320 CPUs, the cluster admits 230 at most",
        ),
        (
            {"code": "overcommit", "asked": 128_000, "free": 54_400, "limit": 230_400},
            "Admission: asks 128 GPUs, room for 54",
        ),
        (
            {"code": "overcommit", "resource": "memory", "asked": 3 << 40, "free": 1 << 29, "limit": 4 << 40},
            "Admission: asks 3 TiB of memory, room for 512 MiB",
        ),
        (
            {"code": "preemption.no_victims", "stage": "preemption", "candidates": 12},
            "5 of 8 pods fit; the next asks 8 GPUs, the best node has 5; no eviction helps (12 pods in reach)",
        ),
        (
            {"code": "preemption.no_victims", "stage": "preemption", "candidates": 1, "needed": 1},
            "Its pod asks 8 GPUs, the best node has 5 free; no eviction helps (1 pod in reach)",
        ),
        ({"code": "nodes.releasing", "asked": 8000}, "Waits for 8 GPUs that others are releasing"),
        ({"code": "nodes.releasing", "asked": 0}, "Waits for room that others are releasing"),
        ({"code": "gang.too_few_pods", "placeable": 3}, "3 of 8 pods of the gang exist"),
        ({"code": "nodes.refused", "nodes": 1, "rejected": {}}, "The only node refuses it"),
        ({"code": "nodes.refused", "rejected": {}}, "All 32 nodes refuse it"),
        ({"code": "nodes.refused"}, "No node takes it. Most common cause: Labels do not match the selector"),
        ({"code": "volume.missing", "resource": "corpus"}, "Volume claim corpus does not exist"),
        ({"code": "pod.too_large", "short": 0}, "Impossible: no node has all that a pod asks"),
        ({"code": "pod.too_large", "asked": 12_000, "limit": 8000}, "Impossible: a pod asks 12 GPUs, the largest node has 8"),
    ],
)
def test_sentences_carry_the_numbers(changes: dict, expected: str):
    assert reasons.say(of(**changes)) == expected


def test_the_model_is_named_where_it_is_known():
    assert reasons.say(of(), "NVIDIA-H100-80GB-HBM3") == "5 of 8 pods fit; the next asks 8 H100, the best node has 5"
    limit = of(code="queue.capability", asked=24_000, free=16_000)
    assert reasons.say(limit, "NVIDIA-H100-80GB-HBM3") == "Queue limit: asks 24 H100, 16 of 80 left"
    assert [figure.label for figure in reasons.numbers(of(), "NVIDIA-H100-80GB-HBM3")] == [
        "H100 for one pod",
        "free on the best node",
        "short",
    ]


def test_the_sum_of_a_pod_that_is_too_large_is_of_the_largest_node():
    figures = reasons.numbers(of(code="pod.too_large", asked=16_000, free=0, limit=8000, short=8000))
    assert [(figure.key, figure.value) for figure in figures] == [("asked", "16"), ("limit", "8"), ("short", "8")]


def test_room_for_admission_is_in_whole_gpus_and_in_parts_of_a_cpu():
    gpus = of(code="overcommit", stage="admission", asked=128_000, free=54_400, limit=230_400, short=73_600)
    assert [figure.value for figure in reasons.numbers(gpus)] == ["128", "54", "74"]
    assert reasons.advice(gpus) == "Wait until running jobs end, or ask for 54 GPUs at most."
    assert [figure.value for figure in reasons.numbers(gpus | {"resource": "cpu"})] == ["128", "54.4", "73.6"]


def test_where_more_is_admitted_than_may_be_no_room_is_left_and_asking_for_less_does_not_help():
    above = of(code="overcommit", stage="admission", asked=128_000, free=-16_000, limit=230_400, short=144_000)
    assert reasons.say(above) == "Admission: asks 128 GPUs, room for 0"
    assert reasons.headline(above)[1] == "Short by 144 GPUs."
    assert reasons.advice(above) == "Wait until running jobs end."
    assert reasons.numbers(above) == []


def test_a_queue_that_has_more_than_it_deserves_is_not_said_to_use_just_that():
    above = of(code="queue.deserved", stage="queue_limit", asked=1000, free=0, limit=100_000, short=7000)
    assert reasons.headline(above)[0] == "Queue lab deserves 100 GPUs, uses 106 and is asked for 1 GPU more."
    assert reasons.numbers(above) == []
    full = above | {"short": 1000}
    assert reasons.headline(full)[0] == "Queue lab deserves 100 GPUs, uses 100 and is asked for 1 GPU more."
    assert [figure.value for figure in reasons.numbers(full)] == ["1", "0", "1"]


def test_values_are_set_apart_from_chinese_words():
    with translation.override("zh-hans"):
        said = reasons.say(of(code="queue.capability", free=16_000, limit=80_000), "NVIDIA-H100-80GB-HBM3")
    assert "申请 8 张 H100，80 中剩 16" in said


def test_an_unknown_code_is_said_by_its_stage():
    verdict = of(code="moon.phase", stage="topology")
    assert reasons.say(verdict) == "Held at: Topology"
    assert reasons.advice(verdict) == ""


def test_a_verdict_of_an_older_scheduler_may_lack_keys():
    assert reasons.say({"code": "nodes.insufficient", "stage": "node_fit"}) == "No node has all that its pod asks"
    assert reasons.numbers({"code": "nodes.none"}) == []
    assert reasons.rejections({}) == []
    assert reasons.steps({"stage": "moon"})


def test_what_can_never_start_says_so():
    assert reasons.is_impossible(of(code="pod.too_large"))
    assert reasons.headline(of(code="pod.too_large"))[1] == "It can never start."
    beyond = of(code="queue.capability", stage="admission", asked=100_000, free=20_000, short=80_000)
    assert reasons.headline(beyond) == (
        "This job asks 100 GPUs, and queue lab may use 80 at most.",
        "It can never start as the queue stands.",
    )
    sum_of = {figure.key: figure.value for figure in reasons.numbers(beyond)}
    assert sum_of == {"asked": "100", "limit": "80", "short": "20"}
    assert not reasons.is_impossible(of(code="queue.capability", asked=80_000))
    assert not reasons.is_impossible(of())
    assert not reasons.is_impossible(None)


def test_stages_before_the_held_one_are_passed():
    assert [(step.stage, step.status) for step in reasons.steps(of())] == [
        ("dependency", "ok"), ("admission", "ok"), ("queue_limit", "ok"), ("node_fit", "held"), ("topology", ""), ("gang", ""),
    ]  # fmt: skip
    assert [step.status for step in reasons.steps(of(code="gang.too_few_pods", stage="gang"))][:3] == ["ok", "held", ""]


def test_rejections_come_largest_first_with_their_share():
    found = reasons.rejections(of())
    assert [(r.count, r.label, r.is_room) for r in found] == [
        (16, "Labels do not match the selector", False), (9, "Too little GPU free", True),
    ]  # fmt: skip
    assert found[0].share == 1
    assert found[1].share == pytest.approx(9 / 16)


def test_who_stays_is_counted_by_the_rule_that_spares_him():
    verdict = of(code="preemption.no_victims", stage="preemption", candidates=9, spared={"gang": 6, "too_little": 2, "new": 1})
    assert reasons.headline(verdict) == (
        "Needs room for 8 pods at once; 5 fit now. It may drive others out, but no eviction among the 9 pods in its reach "
        "makes enough room.",
        "The best node is short by 3 GPUs.",
    )
    assert [(each.count, each.label, each.share) for each in reasons.spared(verdict)] == [
        (6, "Its gang needs it", 1.0),
        (2, "Might go, but that makes too little room", 2 / 6),
        (1, "new", 1 / 6),
    ]
    assert [(step.stage, step.status) for step in reasons.steps(verdict)][2:6] == [
        ("queue_limit", "ok"),
        ("node_fit", ""),
        ("preemption", "held"),
        ("topology", ""),
    ]
    with translation.override("zh-hans"):
        assert reasons.say(verdict).endswith("驱逐也无济于事（可触及 9 个 Pod）")


@pytest.mark.parametrize("rule", list(Spared))
def test_every_reason_for_which_a_pod_stays_has_a_name(rule: Spared):
    assert reasons.spared_label(rule) not in ("", rule)


def test_what_is_being_released_is_not_called_short():
    assert reasons.headline(of(code="nodes.releasing"))[1] == ""
