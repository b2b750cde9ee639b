"""Parts of cards: one scale for whole cards, shares and MIG instances, and never more than the card; states of GPUs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import gpu_usage
from cluster.cards import STATES, WHOLE, parts_of, state_of
from cluster.models import Node
from cluster.queries import cells_of
from cluster.workloads import Holder, Share

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
ANNA = Holder("n", (), "u1", "default/a", "q", "anna", releasing=False)
BO = replace(ANNA, job_uid="u2", job="default/b", owner="bo")


def node(gpus: int = 2, **values: Any) -> Node:
    facts: dict[str, Any] = {"name": "n", "ready": True, "gpu_count": gpus, "gpu_memory_mib": 24_000}
    return Node(**(facts | values))


def states(made: Node, *holders: Holder) -> list[str]:
    return [cell.state for cell in cells_of(made, holders, NOW)]


def test_whole_cards_shares_and_instances_are_in_one_scale() -> None:
    held = [(ANNA, Share("a", 6_000, 25)), (BO, Share("a", 4_800, 0, "g1-2"))]
    parts, over = parts_of(held, 24_000)
    assert [(part.size, part.memory, part.instance) for part in parts] == [(250, 6_000, ""), (200, 4_800, "g1-2")]
    assert not over
    assert [part.size for part in parts_of([(ANNA, None)], 24_000)[0]] == [WHOLE]


def test_where_the_memory_of_a_card_is_not_known_its_cores_count() -> None:
    assert [part.size for part in parts_of([(ANNA, Share("a", 6_000, 40))], 0)[0]] == [400]


def test_pods_that_claim_more_than_the_card_are_drawn_smaller_and_it_is_said() -> None:
    parts, over = parts_of([(ANNA, Share("0", 18_000)), (BO, Share("0", 18_000))], 24_000)
    assert [part.size for part in parts] == [500, 500]
    assert over


@given(
    memory=st.sampled_from([0, 1, 16_384, 81_920]),
    shares=st.lists(st.none() | st.builds(Share, st.just("a"), st.integers(0, 200_000), st.integers(0, 300)), max_size=12),
)
def test_the_parts_of_a_card_are_never_more_than_the_card(memory: int, shares: list[Share | None]) -> None:
    parts, over = parts_of([(ANNA, share) for share in shares], memory)
    assert len(parts) == len(shares)
    assert sum(part.size for part in parts) <= WHOLE
    assert all(part.size >= 0 for part in parts)
    assert over == (sum(_claimed(share, memory) for share in shares) > WHOLE)


def _claimed(share: Share | None, memory: int) -> int:
    if share is None:
        return WHOLE
    return share.memory * WHOLE // memory if memory and share.memory else min(share.cores, 100) * 10


@given(st.data())
def test_every_gpu_has_one_state_and_no_more_than_itself(data: st.DataObject) -> None:
    gpus = data.draw(st.integers(0, 4))
    cards = data.draw(st.sampled_from([[], [[f"GPU-{gpu}", 24_000] for gpu in range(gpus)]]))
    names = st.sampled_from(["0", "1", "9", "GPU-0", "GPU-3", "other", ""])
    share = st.builds(Share, names, st.integers(0, 50_000), st.integers(0, 100))
    holder = st.builds(
        lambda whole, shares, reserved, ends: replace(ANNA, gpus=whole, shares=shares, reserved=reserved, releasing=ends),
        st.lists(st.integers(0, 6), max_size=3).map(tuple),
        st.lists(share, max_size=3).map(tuple),
        st.integers(0, 3),
        st.booleans(),
    )
    facts = {name: data.draw(st.booleans()) for name in ("ready", "heard", "cordoned")}
    cells = cells_of(node(gpus, gpu_cards=cards, gpu_unhealthy=[1], **facts), data.draw(st.lists(holder, max_size=4)), NOW)
    assert [cell.index for cell in cells] == list(range(gpus))
    assert all(cell.state in STATES and cell.size <= WHOLE for cell in cells)
    assert all(cell.state != "free" or not cell.parts for cell in cells)


def test_a_card_is_found_by_the_uuid_that_its_node_registers() -> None:
    made = node(gpu_cards=[["GPU-a", 24_000], ["GPU-b", 16_000]])
    cells = cells_of(made, [replace(ANNA, shares=(Share("GPU-b", 4_000, 0),)), replace(BO, shares=(Share("GPU-x", 1, 0),))], NOW)
    assert [(cell.state, cell.size) for cell in cells] == [("free", 0), ("shared", 250)]
    assert cells[1].memory == 16_000


def test_a_share_that_is_the_whole_card_is_no_share() -> None:
    assert states(node(), replace(ANNA, shares=(Share("0", 24_000, 100),))) == ["allocated", "free"]


def test_who_waits_for_others_to_end_has_free_gpus_reserved_as_many_as_there_are() -> None:
    ends, waits = replace(ANNA, gpus=(0,), releasing=True), replace(BO, reserved=2)
    cells = cells_of(node(3), [ends, waits], NOW)
    assert [cell.state for cell in cells] == ["releasing", "reserved", "reserved"]
    assert cells[1].holder is not None
    assert (cells[1].holder.job, cells[1].size, cells[1].is_in_use) == ("default/b", 0, False)
    assert states(node(2), ends, waits) == ["releasing", "reserved"]


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({"ready": False, "heard": True}, "not_ready"),
        ({"ready": False, "heard": False}, "unknown"),
        ({"unhealthy": True}, "unhealthy"),
        ({"cordoned": True}, "cordoned"),
        ({"cordoned": True, "reserved": True}, "reserved"),
        ({"load": 0}, "free"),
        ({}, "free"),
    ],
)
def test_of_a_gpu_that_nobody_holds_the_worst_that_is_known_counts(facts: dict[str, Any], state: str) -> None:
    well = {"heard": True, "ready": True, "cordoned": False, "unhealthy": False, "reserved": False, "load": None}
    assert state_of(parts=(), **(well | facts)) == state


def test_a_held_gpu_is_idle_only_when_it_was_measured_to_be() -> None:
    usage = {"at": NOW.timestamp() - 60, "load": [0, None], "memory": [1_000, None]}
    held = replace(ANNA, gpus=(0, 1))
    cells = cells_of(node(gpu_usage=usage), [held], NOW)
    assert [(cell.state, cell.load, cell.used) for cell in cells] == [("idle", 0, 1_000), ("allocated", None, None)]
    old = usage | {"at": NOW.timestamp() - 301}
    assert [(cell.state, cell.load) for cell in cells_of(node(gpu_usage=old), [held], NOW)] == [("allocated", None)] * 2


def test_what_was_measured_before_a_pod_began_says_nothing_of_it() -> None:
    usage = {"at": NOW.timestamp() - 60, "load": [0, 90, 70], "memory": [0, 9, 7]}
    new = replace(ANNA, gpus=(0,), since=NOW - timedelta(seconds=30))
    old = replace(BO, gpus=(1,), since=NOW - timedelta(seconds=90))
    cells = cells_of(node(3, gpu_usage=usage), [new, old], NOW)
    assert [(cell.state, cell.load, cell.used) for cell in cells] == [
        ("allocated", None, None),
        ("allocated", 90, 9),
        ("free", None, None),
    ]


@pytest.mark.parametrize("text", [None, "", "{", "[]", "7", '{"load": [1]}', '{"time": 5, "load": [1]}', '{"time": "soon"}'])
def test_a_text_that_is_no_measurement_measures_nothing(text: str | None) -> None:
    assert gpu_usage.read(text) == gpu_usage.NOTHING
    assert gpu_usage.as_row(gpu_usage.read(text)) == {}


def test_of_a_measurement_what_is_no_percent_is_left_out() -> None:
    said = '{"time": "2030-01-01T12:00:00Z", "load": [71.6, 101, -1, "9", null, true, 0], "memory": 5}'
    usage = gpu_usage.read(said)
    assert usage.load == (72, None, None, None, None, None, 0)
    assert usage.memory == ()
    assert (usage.load_of(0), usage.load_of(9), usage.fresh(NOW)) == (72, None, True)
    assert gpu_usage.of_row(gpu_usage.as_row(usage)) == usage


def test_what_nvidia_smi_does_not_know_was_not_measured() -> None:
    usage = gpu_usage.from_nvidia_smi("0, 71, 20992\n2, [N/A], 12\nno table\n", NOW.timestamp())
    assert (usage.load, usage.memory) == ((71, None, None), (20992, None, 12))
    assert gpu_usage.read(gpu_usage.text_of(usage)) == usage
    assert gpu_usage.from_nvidia_smi("", 1.0).load == ()
