"""Numbers, amounts and durations in words."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import display
from cluster.templatetags.fleet import resource_title


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0"), (1.5, "1.5"), (9.96, "10"), (99.94, "99.9"), (1234, "1,234"), (1234.5, "1,234"), (-2.25, "-2.2")],
)
def test_numbers_have_one_decimal_below_a_hundred(value: float, expected: str):
    assert display.number(value) == expected


@pytest.mark.parametrize(
    ("units", "resource", "expected"),
    [
        (1500, "cpu", ("1.5", "")),
        (8000, "nvidia.com/gpu", ("8", "")),
        (110, "pods", ("110", "")),
        (512, "memory", ("512", "B")),
        (3 << 29, "memory", ("1.5", "GiB")),
        (1 << 50, "ephemeral-storage", ("1", "PiB")),
        (1 << 21, "hugepages-2Mi", ("2", "MiB")),
    ],
)
def test_amounts_come_in_the_unit_people_use(units: int, resource: str, expected: tuple[str, str]):
    assert display.amount(units, resource) == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("NVIDIA-A100-SXM4-80GB", "A100"),
        ("NVIDIA-H100-80GB-HBM3", "H100"),
        ("Tesla-V100-SXM2-32GB", "V100"),
        ("NVIDIA-L40S", "L40S"),
        ("NVIDIA-GeForce-RTX-4090", "GeForce-RTX-4090"),
        ("AMD-Instinct-MI300X", "Instinct-MI300X"),
        ("", ""),
    ],
)
def test_models_go_by_the_name_people_say(model: str, expected: str):
    assert display.short_model(model) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-5, "0 s"), (0, "0 s"), (59.9, "59 s"), (60, "1 min"), (3599, "59 min"), (3660, "1 h 01 min"), (180_000, "2 d 02 h")],
)
def test_durations_have_two_units_at_most(seconds: float, expected: str):
    assert display.duration(seconds) == expected
    assert display.duration(timedelta(seconds=seconds)) == expected


@given(st.integers(min_value=0, max_value=2**63 - 1), st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "pods", "x/y"]))
def test_any_amount_can_be_written(units: int, resource: str):
    number, _unit = display.amount(units, resource)
    assert number
    assert display.quantity(units, resource)


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915"])
def test_what_the_scheduler_counts_as_a_gpu_is_called_one(resource: str):
    assert display.quantity(3000, resource) == "3 GPUs"


def test_indices_that_follow_each_other_are_said_as_a_range():
    assert display.runs([6, 0, 1, 2, 3, 8]) == "0–3,6,8"
    assert display.runs([]) == ""


@pytest.mark.parametrize(
    ("resource", "title"),
    [("memory", "Memory"), ("cpu", "CPU"), ("nvidia.com/gpu", "GPU"), ("volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory")],
)
def test_a_resources_title_begins_with_a_capital_unless_it_is_a_name(resource: str, title: str):
    assert resource_title(resource) == title
