"""Kubernetes quantities (`500m`, `1.5Gi`, `2e3`) and amounts in a resource's smallest unit.

Arithmetic is done on int64 amounts in smallest units: milli-CPU, bytes of memory and ephemeral storage, whole pods,
and milli-units of every other resource. The grammar is that of k8s.io/apimachinery's resource.Quantity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_UP, Context, Decimal, localcontext
from functools import lru_cache

from kubernetes.utils.quantity import parse_quantity as client_quantity

from cluster.said import said

MAX_UNITS = 2**63 - 1

# Checked before the client's parser converts: it would take `Infinity`, `1_000` and other scripts' digits.
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_LONGEST = 128
_FARTHEST_EXPONENT = 300  # beyond int64 in one direction and below a nano-unit in the other
_EXACT = Context(prec=_LONGEST + 2 * _FARTHEST_EXPONENT)
_NANO = Decimal("1e-9")

GPU_RESOURCES = frozenset({"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "volcano.sh/gpu-number"})
VGPU_PERCENT = "volcano.sh/vgpu-memory-percentage"
BYTES = frozenset({"memory", "ephemeral-storage"})


def parse_quantity(value: str | int | float | Decimal) -> Decimal:
    """The number that a quantity stands for, exact, what is finer than a nano-unit rounded away from zero.

    Raises ValueError, which says what would be right, for what Kubernetes would not take.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Decimal)):
        raise ValueError(
            said("a quantity is text or a number such as 2, '500m' or '1.5Gi', not %(type)s", type=type(value).__name__)
        )
    if isinstance(value, (float, Decimal)) and not math.isfinite(value):
        raise ValueError(said("a quantity is finite, not %(value)s", value=value))
    if isinstance(value, str):
        return _parse(value)
    if isinstance(value, int) and abs(value) > 10**_LONGEST:
        raise ValueError(said("a number of more than 128 digits is no quantity"))
    return _parse(repr(value) if isinstance(value, float) else str(value))


@lru_cache(maxsize=8192)
def _parse(text: str) -> Decimal:
    if len(text) > _LONGEST:
        raise ValueError(
            said("a quantity has at most %(most)s characters, this one has %(count)s", most=_LONGEST, count=len(text))
        )
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(_advice(text))
    if exponent := match["exponent"]:
        text = f"{match['number']}e{max(-_FARTHEST_EXPONENT, min(int(exponent), _FARTHEST_EXPONENT))}"
    with localcontext(_EXACT):
        number: Decimal = client_quantity(text)  # type: ignore[no-untyped-call]
    nano = number.quantize(_NANO, rounding=ROUND_UP, context=_EXACT)
    return nano.to_integral_value() if nano == nano.to_integral_value() else nano


def _advice(text: str) -> str:
    """Why a text is no quantity, and the nearest thing that is one."""
    right = said(
        "write a number with an optional suffix (m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei), such as '500m' or '1.5Gi'"
    )
    stripped = text.strip()
    if stripped != text and _QUANTITY.fullmatch(stripped):
        right = said("write %(right)r, without the spaces", right=stripped)
    elif match := re.fullmatch(r"([0-9.]+)\s*(?:cpus?|cores?)", stripped, re.IGNORECASE):
        right = said("write %(right)r", right=match[1])
    elif match := re.fullmatch(r"([0-9.]+)\s*([kmgtpe])i?b?", stripped, re.IGNORECASE):
        binary, decimal = f"{match[1]}{match[2].upper()}i", f"{match[1]}{match[2].upper().replace('K', 'k')}"
        right = said("write %(binary)r (powers of 1024) or %(decimal)r", binary=binary, decimal=decimal)
    return said("%(text)r is not a quantity: %(right)s", text=text, right=right)


def unit_scale(resource: str) -> int:
    """How many smallest units make one: 1000 for CPU and scalars, 1 for bytes and pods."""
    return 1 if resource in BYTES or resource == "pods" else 1000


def to_units(resource: str, quantity: str | int | float | Decimal) -> int:
    """An amount in the resource's smallest unit, rounded up. Raises ValueError when negative or beyond int64."""
    if isinstance(quantity, str):
        return _to_units(resource, quantity)
    return _in_range(resource, parse_quantity(quantity), quantity)


@lru_cache(maxsize=8192)
def _to_units(resource: str, text: str) -> int:
    return _in_range(resource, _parse(text), text)


def _in_range(resource: str, number: Decimal, given: object) -> int:
    if number < 0:
        raise ValueError(said("an amount of %(resource)s is 0 or more, not %(given)s", resource=resource, given=given))
    units = _EXACT.multiply(number, Decimal(unit_scale(resource)))
    if units > MAX_UNITS:
        most = MAX_UNITS // unit_scale(resource)
        raise ValueError(
            said(
                "%(given)s is more %(resource)s than can be counted (at most %(most)s)", given=given, resource=resource, most=most
            )
        )
    return int(units.to_integral_value(rounding=ROUND_CEILING))


def format_units(resource: str, units: int) -> str:
    """The canonical quantity of an amount in smallest units: `500m`, `2`, `64Gi`; exact, so `to_units` gives it back."""
    if resource in BYTES:
        for suffix, factor in reversed(_BINARY.items()):
            if units and units % factor == 0:
                return f"{units // factor}{suffix}"
        return str(units)
    scale = unit_scale(resource)
    return str(units // scale) if units % scale == 0 else f"{units}m"


def is_counted(resource: str) -> bool:
    """Whether the scheduler's arithmetic knows a resource name at all (Volcano ignores what is no scalar resource).

    A percentage of a card's memory is no amount of a node: only whoever chooses the card can tell what it comes to.
    """
    if resource in {"cpu", "memory", "ephemeral-storage", "pods"}:
        return True
    if resource.startswith(("count/", "requests.")) or resource == VGPU_PERCENT:
        return False
    return "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))


def resource_units(resources: Mapping[str, str | int | float | Decimal | None] | None) -> dict[str, int]:
    """A resource list in smallest units, without names that are not counted and amounts that are not given (null).

    Raises ValueError that names the resource.
    """
    found: dict[str, int] = {}
    for resource, quantity in (resources or {}).items():
        if quantity is not None and is_counted(resource):
            try:
                found[resource] = to_units(resource, quantity)
            except ValueError as error:
                raise ValueError(said("%(resource)s: %(error)s", resource=resource, error=error)) from None
    return found


def is_gpu(resource: str) -> bool:
    """Whether one of this resource is one whole GPU."""
    return resource in GPU_RESOURCES


def gpu_count(units: Mapping[str, int]) -> float:
    """GPUs in a map of smallest units; whole numbers unless a share of one was asked for."""
    milli = sum(amount for resource, amount in units.items() if resource in GPU_RESOURCES)
    return milli // 1000 if milli % 1000 == 0 else milli / 1000
