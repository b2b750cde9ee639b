"""Amounts and the comparisons of the reference's table of resource arithmetic."""

import numpy as np
import pytest

from scheduler.model import resources
from scheduler.model.resources import CPU, MEMORY, PODS, Dimensions

GPU = "nvidia.com/gpu"


def test_a_dimension_is_made_when_first_seen_and_widens_the_table():
    dims = Dimensions(width=3)
    assert dims.place("cpu") == CPU
    assert dims.place(GPU) == 3
    assert dims.width == 6
    assert dims.amounts({GPU: 1000}).values.tolist() == [0, 0, 0, 1000, 0, 0]


def test_amounts_beyond_64_bits_are_refused_and_uncounted_names_left_out():
    dims = Dimensions()
    with pytest.raises(ValueError, match="memory"):
        dims.amounts({"memory": 2**63})
    assert not dims.amounts({"count/pods": 3, "requests.cpu": 4, "gold": 2})


def test_units_name_what_is_there():
    dims = Dimensions()
    amounts = dims.amounts({"cpu": 0, GPU: 2000})
    assert dims.units(amounts.values) == {GPU: 2000}


def test_less_equal_allows_a_tenth_of_a_unit():
    left = np.array([100.05, 0.0, 0.0])
    assert resources.less_equal(left, np.array([100.0, 0.0, 0.0]))
    assert not resources.less_equal(left + 0.1, np.array([100.0, 0.0, 0.0]))


def test_empty_ignores_pods():
    vector = np.zeros(4, np.int64)
    vector[PODS] = 1
    assert resources.is_empty(vector)
    vector[MEMORY] = 1
    assert not resources.is_empty(vector)
