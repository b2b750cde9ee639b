"""Admission of what makes pods reachable: Services and NetworkPolicies, as far as Basalt makes and reads them."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Annotated, Any, Literal

from pydantic import Field

from cluster.admission import PlainRules, Request, Rules
from cluster.errors import FieldError
from cluster.kinds import NETWORK_POLICY, SERVICE, Kind
from cluster.names import LABEL_ADVICE, is_dns_label
from cluster.pointers import pointer
from cluster.said import said
from cluster.selectors import is_label_key, is_label_value
from cluster.validation import Faults, Meta, Shape, Texts, check_shape, prune

HEADLESS = "None"
"""The `clusterIP` of a Service that has none: its name stands for the addresses of its pods."""

Port = Annotated[int, Field(ge=1, le=65535)]
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9](-?[a-z0-9])*")


class _ServicePort(Shape):
    name: str = ""
    port: Port
    targetPort: int | str = 0
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    nodePort: Annotated[int, Field(ge=0, le=65535)] = 0


class _ServiceSpec(Shape):
    type: Literal["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"] = "ClusterIP"
    clusterIP: str = ""
    selector: Texts | None = None
    ports: list[_ServicePort] | None = None
    publishNotReadyAddresses: bool = False
    externalName: str = ""


class _Service(Shape):
    metadata: Meta
    spec: _ServiceSpec


class _Requirement(Shape):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] | None = None


class _LabelSelector(Shape):
    matchLabels: Texts | None = None
    matchExpressions: list[_Requirement] | None = None


class _Block(Shape):
    cidr: str


class _Peer(Shape):
    podSelector: _LabelSelector | None = None
    namespaceSelector: _LabelSelector | None = None
    ipBlock: _Block | None = None


class _PolicyPort(Shape):
    port: int | str = 0
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"


class _Ingress(Shape):
    ports: list[_PolicyPort] | None = None
    # `from` is a word of Python's: the shape of the peers is checked under its own name.


class _Egress(Shape):
    ports: list[_PolicyPort] | None = None
    to: list[_Peer] | None = None


class _PolicySpec(Shape):
    podSelector: _LabelSelector
    policyTypes: list[Literal["Ingress", "Egress"]] | None = None
    ingress: list[_Ingress] | None = None
    egress: list[_Egress] | None = None


class _NetworkPolicy(Shape):
    metadata: Meta
    spec: _PolicySpec


class ServiceRules(PlainRules):
    """Services: ports with names of their own, labels to select by, an address that stays."""

    def default(self, request: Request) -> None:
        """The type, and TCP."""
        spec = request.obj.get("spec")
        if isinstance(spec, dict) and not spec.get("type"):
            spec["type"] = "ClusterIP"

    def check(self, request: Request) -> list[FieldError]:
        """Shapes, then what belongs together."""
        shape = check_shape(_Service, request.obj)
        found, spec = Faults(), prune(request.obj, shape).get("spec") or {}
        kind, address, ports = spec.get("type") or "ClusterIP", spec.get("clusterIP") or "", spec.get("ports") or []
        if not ports and kind != "ExternalName" and address != HEADLESS:
            found.add("/spec/ports", f"must have at least one port, or clusterIP: {HEADLESS}", "required")
        if kind == "ExternalName" and not spec.get("externalName"):
            found.add("/spec/externalName", "is required with type ExternalName", "required")
        if address == HEADLESS and kind not in ("ClusterIP", "ExternalName"):
            found.add("/spec/clusterIP", f"cannot be {HEADLESS} with type {kind}", "conflict")
        elif address not in ("", HEADLESS) and not _is_address(address):
            found.add("/spec/clusterIP", f"{address!r} is no address: leave it out, or write {HEADLESS}", "format")
        _check_labels(spec.get("selector") or {}, "/spec/selector", found)
        _check_ports(ports, found)
        was = ((request.old or {}).get("spec") or {}).get("clusterIP") or ""
        if was and address != was:
            found.add("/spec/clusterIP", "cannot change: delete the Service and make another", "immutable")
        return Faults(shape).with_apart(found)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _check_ports(ports: list[dict[str, Any]], faults: Faults) -> None:
    names: set[str] = set()
    numbers: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        where, name = f"/spec/ports/{index}", port.get("name") or ""
        if not name and len(ports) > 1:
            faults.add(f"{where}/name", said("is required when there are several ports"), "required")
        elif name and not is_dns_label(name):
            faults.add(
                f"{where}/name",
                said("%(name)r is no port name: %(advice)s", name=name, advice=LABEL_ADVICE),
                "format",
            )
        elif name and name in names:
            faults.add(f"{where}/name", said("the port name %(name)r is used twice", name=name), "duplicate")
        number = (port.get("protocol") or "TCP", port.get("port"))
        if port.get("port") is not None and number in numbers:
            faults.add(
                f"{where}/port",
                said("%(protocol)s port %(port)s is used twice", protocol=number[0], port=number[1]),
                "duplicate",
            )
        names.add(name)
        numbers.add(number)
        _check_target(port.get("targetPort"), f"{where}/targetPort", faults)


def _check_target(target: Any, where: str, faults: Faults) -> None:
    if isinstance(target, str) and (len(target) > 15 or not _PORT_NAME.fullmatch(target)):
        faults.add(
            where,
            said("%(target)r is no port: a number, or at most 15 lower-case letters, digits and single '-'", target=target),
            "format",
        )
    elif isinstance(target, int) and target and not 0 < target < 65536:
        faults.add(where, said("must be 1 to 65535, not %(target)s", target=target), "range")


class NetworkPolicyRules(PlainRules):
    """NetworkPolicies: whom they are about, and from and to whom traffic is let through."""

    def default(self, request: Request) -> None:
        """What a policy with rules is about: what comes in always, what goes out when it says so."""
        spec = request.obj.get("spec")
        if isinstance(spec, dict) and not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]

    def check(self, request: Request) -> list[FieldError]:
        """Shapes, then what belongs together."""
        shape = check_shape(_NetworkPolicy, request.obj)
        found, spec = Faults(), prune(request.obj, shape).get("spec") or {}
        _check_selector(spec.get("podSelector") or {}, "/spec/podSelector", found)
        for field, side in (("ingress", "from"), ("egress", "to")):
            for index, rule in enumerate(spec.get(field) or []):
                _check_peers(rule.get(side), f"/spec/{field}/{index}/{side}", found)
        return Faults(shape).with_apart(found)


def _check_peers(peers: Any, where: str, faults: Faults) -> None:
    if peers is None:
        return
    if not isinstance(peers, list):
        faults.add(where, said("must be a list of peers"), "type")
        return
    for index, peer in enumerate(peers):
        place = f"{where}/{index}"
        wrong = [FieldError(place + fault.pointer, fault.message, fault.code) for fault in check_shape(_Peer, peer)]
        for fault in wrong:
            faults.add(fault.pointer, fault.message, fault.code)
        if wrong:
            continue
        given = [field for field in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(field) is not None]
        if not given:
            faults.add(place, said("must have a podSelector, a namespaceSelector or an ipBlock"), "required")
        elif "ipBlock" in given and len(given) > 1:
            faults.add(f"{place}/ipBlock", said("stands alone: give the selectors a peer of their own"), "conflict")
        for field in given:
            if field != "ipBlock":
                _check_selector(peer[field], f"{place}/{field}", faults)


def _check_selector(selector: dict[str, Any], where: str, faults: Faults) -> None:
    _check_labels(selector.get("matchLabels") or {}, f"{where}/matchLabels", faults)
    for index, expression in enumerate(selector.get("matchExpressions") or []):
        place, needs = f"{where}/matchExpressions/{index}", expression.get("operator") in ("In", "NotIn")
        if needs != bool(expression.get("values")):
            faults.add(f"{place}/values", said("is given with In and NotIn, and with nothing else"), "conflict")


def _check_labels(labels: dict[str, str], where: str, faults: Faults) -> None:
    for key, value in labels.items():
        if not is_label_key(key) or not is_label_value(value):
            faults.add(where + pointer(key), said("%(key)s=%(value)s is no label", key=key, value=value), "format")


RULES: dict[Kind, Rules] = {SERVICE: ServiceRules(), NETWORK_POLICY: NetworkPolicyRules()}
