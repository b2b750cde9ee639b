"""The one-role job that `job run` and `vsub` make of their options, and quantities as Kubernetes writes them."""

from __future__ import annotations

import re
from decimal import ROUND_UP, Decimal
from typing import Any

from basalt.client.errors import Refused

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|n|u|[eE][+-]?[0-9]+)?", re.ASCII)
_FACTORS = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1), "k": Decimal(10**3), "M": Decimal(10**6),
    "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18),
    **{unit: Decimal(1024 ** (power + 1)) for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))},
}  # fmt: skip


def job(
    name: str, namespace: str, *, image: str, minimum: int, replicas: int, requests: str, limits: str, scheduler: str,
    queue: str = "", command: list[str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A Job with one role, whose name admission gives. Raises Refused for amounts that are none."""
    container: dict[str, Any] = {"image": image, "name": name, "imagePullPolicy": "IfNotPresent"}
    if command:
        container["command"] = command
    container["resources"] = {"limits": resources(limits), "requests": resources(requests)}
    template = {
        "metadata": {"name": name, "labels": {"job.volcano.sh": name}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    spec: dict[str, Any] = {
        "minAvailable": minimum,
        "schedulerName": scheduler,
        "tasks": [{"replicas": replicas, "template": template}],
    }
    if queue:
        spec["queue"] = queue
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def resources(text: str) -> dict[str, str]:
    """`cpu=1000m,memory=100Mi` as a mapping. Raises Refused."""
    found: dict[str, str] = {}
    for part in text.split(",") if text else ():
        name, equals, value = part.partition("=")
        if not equals or not name or "=" in value:
            raise Refused(f"invalid argument syntax {part}, expected <resource>=<value>")
        if not _QUANTITY.fullmatch(value):
            raise Refused(f"{value!r} of {name} is no quantity: write it as 500m, 2, 100Mi or 1Gi")
        found[name] = value
    return found


def canonical(text: Any) -> str:
    """A quantity in Kubernetes's own form: `1000m` is `1`, `1024Mi` is `1Gi`; what is none stays as it is; nothing is `0`."""
    match = _QUANTITY.fullmatch(str(text if text is not None else "0"))
    if match is None:
        return str(text)
    number, unit = Decimal(match[1]), match[2] or ""
    if unit[:1] in ("e", "E") and len(unit) > 1:
        value, unit = number * Decimal(10) ** int(unit[1:]), ""
    else:
        value = number * _FACTORS[unit]
    if unit.endswith("i"):
        return _scaled(value, ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"))
    if value != value.to_integral_value():
        for small in ("m", "u", "n"):
            scaled = value / _FACTORS[small]
            if scaled == scaled.to_integral_value():
                return f"{int(scaled)}{small}"
        return f"{int((value / _FACTORS['n']).to_integral_value(ROUND_UP))}n"
    return _scaled(value, ("E", "P", "T", "G", "M", "k"))


def _scaled(value: Decimal, units: tuple[str, ...]) -> str:
    for unit in units:
        scaled = value / _FACTORS[unit]
        if value and scaled == scaled.to_integral_value():
            return f"{int(scaled)}{unit}"
    return str(int(value))
