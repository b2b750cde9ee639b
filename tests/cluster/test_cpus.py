"""Lists of CPUs as texts and as bits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.cpus import each_cpu, format_cpus, parse_cpus


@pytest.mark.parametrize(
    ("text", "mask"), [("", 0), ("0", 1), ("0-3", 0b1111), ("0,2-3,8", 0b1_0000_1101), ("4095", 1 << 4095), ("1,0-2", 0b111)]
)
def test_lists_are_bits(text: str, mask: int) -> None:
    assert parse_cpus(text) == mask


@pytest.mark.parametrize("text", ["a", "0-", "3-1", "4096", "0,,1", " 0", "0;1", "-1", "٣", "0-99999"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="CPUs"):
        parse_cpus(text)


@given(st.sets(st.integers(0, 4095), max_size=40))
def test_writing_and_reading_agree(ids: set[int]) -> None:
    mask = sum(1 << cpu for cpu in ids)
    assert parse_cpus(format_cpus(mask)) == mask
    assert each_cpu(mask) == sorted(ids)
