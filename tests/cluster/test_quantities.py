"""Quantities: Kubernetes's grammar and no more, exact amounts, rounding up."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cluster.quantities import MAX_UNITS, format_units, gpu_count, parse_quantity, resource_units, to_units


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", "0"), ("1", "1"), ("+1", "1"), ("-1", "-1"), ("500m", "0.5"), ("1.5Gi", "1610612736"), (".5", "0.5"),
        ("5.", "5"), ("2e3", "2000"), ("2E3", "2000"), ("1E", "1e18"), ("1Ei", "1152921504606846976"), ("1e-3", "0.001"),
        ("100k", "100000"), ("3n", "3e-9"), ("0.1n", "1e-9"), ("-0.1n", "-1e-9"), ("1e-400", "1e-9"), ("007", "7"),
    ],
)  # fmt: skip
def test_what_kubernetes_takes_is_taken(text: str, number: str) -> None:
    assert parse_quantity(text) == Decimal(number)


@pytest.mark.parametrize(
    "text",
    ["", " ", ".", "+", "1 ", " 1", "1 Gi", "1gi", "1KI", "1K", "1_000", "Infinity", "NaN", "inf", "1e", "1e1.5", "1e+", "1Gim",
     "0x10", "1,5", "--1", "1.2.3", "١", "１", "1\n", "2cpus", "4GB", "e3", "m", "1" * 200],
)  # fmt: skip
def test_what_kubernetes_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantity"):
        parse_quantity(text)


@pytest.mark.parametrize("value", [True, None, [], {}, float("inf"), float("nan"), Decimal("Infinity"), 10**200])
def test_what_is_no_text_and_no_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="quantity"):
        parse_quantity(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "right"), [("2cpus", "write '2'"), ("4GB", "'4Gi'"), (" 1Gi", "without the spaces"), ("1K", "'1k'")]
)
def test_a_refusal_says_what_would_be_right(text: str, right: str) -> None:
    with pytest.raises(ValueError, match=re.escape(right)):
        parse_quantity(text)


GRAMMAR = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")


@given(st.text(alphabet="0123456789+-.eEimKMGnuk_ ١", max_size=12))
@example("1e99999999999")
def test_any_text_is_taken_exactly_when_it_fits_the_grammar(text: str) -> None:
    if GRAMMAR.fullmatch(text):
        assert parse_quantity(text).is_finite()
    else:
        with pytest.raises(ValueError, match="quantity"):
            parse_quantity(text)


RESOURCES = ["cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu", "hugepages-2Mi"]


@given(st.sampled_from(RESOURCES), st.integers(0, MAX_UNITS))
def test_amounts_are_written_so_that_they_come_back(resource: str, units: int) -> None:
    assert to_units(resource, format_units(resource, units)) == units


@given(st.sampled_from(RESOURCES), st.decimals(0, 10**9, places=9), st.decimals(0, 10**9, places=9))
def test_amounts_are_rounded_up_and_keep_their_order(resource: str, first: Decimal, second: Decimal) -> None:
    low, high = sorted((first, second))
    assert to_units(resource, low) <= to_units(resource, high)
    assert to_units(resource, low) >= low


@pytest.mark.parametrize(
    ("resource", "text", "units"),
    [("cpu", "1", 1000), ("cpu", "0.0001", 1), ("memory", "1Gi", 2**30), ("memory", "512m", 1), ("ephemeral-storage", "1k", 1000),
     ("pods", "110", 110), ("nvidia.com/gpu", "8", 8000), ("nvidia.com/gpu", "0.5", 500), ("hugepages-2Mi", "2Mi", 2097152000)],
)  # fmt: skip
def test_each_resource_has_its_smallest_unit(resource: str, text: str, units: int) -> None:
    assert to_units(resource, text) == units


@pytest.mark.parametrize(
    ("resource", "text"), [("cpu", "-1"), ("cpu", "1e300"), ("memory", "9223372036854775808"), ("cpu", "10P")]
)
def test_an_amount_out_of_range_is_refused(resource: str, text: str) -> None:
    with pytest.raises(ValueError, match=resource):
        to_units(resource, text)


def test_a_resource_list_leaves_out_what_the_scheduler_does_not_count() -> None:
    given = {"cpu": 1, "nvidia.com/gpu": "1", "count/pods": "3", "requests.cpu": "1", "foo": "1", "hugepages-2Mi": "2Mi"}
    assert sorted(resource_units(given)) == ["cpu", "hugepages-2Mi", "nvidia.com/gpu"]
    with pytest.raises(ValueError, match=r"^cpu: '2cpus'"):
        resource_units({"cpu": "2cpus"})


def test_gpus_of_all_vendors_are_counted() -> None:
    assert gpu_count({"cpu": 1000, "nvidia.com/gpu": 2000, "amd.com/gpu": 1000}) == 3
    assert gpu_count({"nvidia.com/gpu": 500}) == 0.5
