"""Expressions over devices, and which devices an expression cannot tell apart."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.device_selectors import Version, compile_selector, device_value

GPU = "gpu.example.com"
ATTRIBUTES = {"model": "A100", "index": 3, "fast": True, "driver": Version("1.10.0"), "other.example.com/rack": "r1"}
CAPACITY = {"memory": Decimal(40 * 2**30)}


def fits(expression: str) -> bool:
    return compile_selector(expression).fits(GPU, ATTRIBUTES, CAPACITY)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f'device.driver == "{GPU}"', True),
        (f'device.attributes["{GPU}"].model == "A100"', True),
        (f'device.attributes["{GPU}"].index >= 3 && device.attributes["{GPU}"].fast', True),
        (f'device.attributes["{GPU}"].index == 4', False),
        ('device.attributes["other.example.com"].rack.startsWith("r")', True),
        (f'device.attributes["{GPU}"].rack == "r1"', False),
        (f'"model" in device.attributes["{GPU}"]', True),
        (f'"rack" in device.attributes["{GPU}"]', False),
        (f'has(device.attributes["{GPU}"].model)', True),
        ('has(device.attributes["nobody"].model)', False),
        (f'device.attributes["{GPU}"].model.lowerAscii() == "a100"', True),
        (f'device.attributes["{GPU}"].model.matches("^A1")', True),
        (f'device.attributes["{GPU}"].driver.compareTo(semver("1.9.0")) > 0', True),
        (f'device.attributes["{GPU}"].driver.isLessThan(semver("1.10.0-rc.1"))', False),
        (f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) == 0', True),
        (f'device.capacity["{GPU}"].memory.isLessThan(quantity("40Gi"))', False),
        (f'device.attributes["{GPU}"].absent == "x" || true', True),
        (f'device.attributes["{GPU}"].absent == "x"', False),
        (f'device.attributes["{GPU}"].model', False),
        ('1 + "a" == 2', False),
        ("true", True),
    ],
)
def test_expressions(expression: str, expected: bool) -> None:
    assert fits(expression) is expected


@pytest.mark.parametrize("expression", ["device.driver ==", "", "a b", "(((", "x" * 20_000])
def test_what_is_no_expression_is_said_so(expression: str) -> None:
    with pytest.raises(ValueError, match=r"CEL|characters"):
        compile_selector(expression)


_TERMS = st.sampled_from([
    f'device.attributes["{GPU}"].a == "1"', f"device.attributes['{GPU}'].b == 2", f'"a" in device.attributes["{GPU}"]',
    f'device.capacity["{GPU}"].c.isGreaterThan(quantity("1"))', f'device.driver == "{GPU}"',
    f'device.attributes["{GPU}"].exists(k, k == "b")', f'size(device.attributes["{GPU}"]) == 1',
    f'device.attributes["{GPU}"]["a"] == "1"', f'"b" in device.attributes["{GPU}"] ? true : false',
])  # fmt: skip
_DEVICES = st.fixed_dictionaries({}, optional={"a": st.sampled_from(["1", "2"]), "b": st.integers(1, 2), "d": st.booleans()})


@settings(deadline=None)
@given(st.lists(_TERMS, min_size=1, max_size=3), st.lists(_DEVICES, min_size=1, max_size=6), st.integers(0, 2))
def test_answers_that_are_kept_are_those_that_would_be_given(
    terms: list[str], devices: list[dict[str, object]], amount: int
) -> None:
    selector = compile_selector(" && ".join(f"({term})" for term in terms))
    for attributes in devices:
        capacity = {"c": Decimal(amount)}
        assert selector.fits(GPU, attributes, capacity) is selector.matches(device_value(GPU, attributes, capacity))
