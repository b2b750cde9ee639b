"""A pod spec, validated like a real pod's as far as scheduling and running it go."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from cluster.names import LABEL_ADVICE, SUBDOMAIN_ADVICE, is_dns_label, is_dns_subdomain
from cluster.pointers import pointer
from cluster.quantities import parse_quantity
from cluster.said import said
from cluster.selectors import is_label_key, is_label_value
from cluster.validation import Faults
from jobs.manifest.totals import check_pod_total

_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9](-?[a-z0-9])*")
_NATIVE = frozenset({"cpu", "memory", "ephemeral-storage"})


def check_labels(meta: dict[str, Any], where: str, faults: Faults) -> None:
    """Labels and annotation keys by Kubernetes's grammar."""
    for key, value in (meta.get("labels") or {}).items():
        if not is_label_key(key):
            faults.add(
                where + pointer("labels", key), said("is no label key: at most one '/' and 63 characters after it"), "format"
            )
        if not is_label_value(value):
            faults.add(where + pointer("labels", key), said("must have at most 63 letters, digits, '-', '_' and '.'"), "format")
    for key in meta.get("annotations") or {}:
        if not is_label_key(key.lower()):
            faults.add(
                where + pointer("annotations", key),
                said("is no annotation key: at most one '/' and 63 characters after it"),
                "format",
            )


def check_pod_spec(spec: dict[str, Any], where: str, faults: Faults) -> None:
    """Everything about a pod spec whose shape is already right; what is missing was named with the shape."""
    containers, init = spec.get("containers"), spec.get("initContainers") or []
    if containers is not None and not containers:
        faults.add(f"{where}/containers", said("must have at least one container"), "required")
    volumes = _unique(spec.get("volumes") or [], "name", f"{where}/volumes", faults, is_dns_label, LABEL_ADVICE)
    names = _unique(containers or [], "name", f"{where}/containers", faults, is_dns_label, LABEL_ADVICE)
    _unique(init, "name", f"{where}/initContainers", faults, is_dns_label, LABEL_ADVICE, names)
    for field, group in (("containers", containers or []), ("initContainers", init)):
        for index, container in enumerate(group):
            _check_container(container, f"{where}/{field}/{index}", volumes, faults)
    for field in ("hostname", "subdomain"):
        if spec.get(field) and not is_dns_label(spec[field]):
            faults.add(
                f"{where}/{field}",
                said("%(value)r is no DNS label: %(advice)s", value=spec[field], advice=LABEL_ADVICE),
                "format",
            )
    for field in ("priorityClassName", "serviceAccountName", "schedulerName", "nodeName"):
        if spec.get(field) and not is_dns_subdomain(spec[field]):
            faults.add(
                f"{where}/{field}", said("%(value)r is no name: %(advice)s", value=spec[field], advice=SUBDOMAIN_ADVICE), "format"
            )
    for key, value in (spec.get("nodeSelector") or {}).items():
        if not is_label_key(key) or not is_label_value(value):
            faults.add(
                where + pointer("nodeSelector", key), said("%(key)s=%(value)s is no label", key=key, value=value), "format"
            )
    for index, toleration in enumerate(spec.get("tolerations") or []):
        _check_toleration(toleration, f"{where}/tolerations/{index}", faults)
    for key, quantity in (spec.get("overhead") or {}).items():
        _check_resource(key, quantity, where + pointer("overhead", key), faults)
    check_pod_total(spec, where, faults)


def _unique(
    items: list[dict[str, Any]],
    field: str,
    where: str,
    faults: Faults,
    good: Callable[[str], bool],
    advice: str,
    taken: set[str] | None = None,
) -> set[str]:
    """Check a list's names and that none comes twice; the names found."""
    names = set(taken or ())
    for index, item in enumerate(items):
        name = item.get(field)
        if name is None:
            continue
        if not good(name):
            faults.add(
                f"{where}/{index}/{field}", said("%(name)r is no DNS label: %(advice)s", name=name, advice=advice), "format"
            )
        elif name in names:
            faults.add(
                f"{where}/{index}/{field}", said("the name %(name)r is used twice: give each its own", name=name), "duplicate"
            )
        names.add(name)
    return names


def _check_container(container: dict[str, Any], where: str, volumes: set[str], faults: Faults) -> None:
    image = container.get("image")
    if image is not None and (not image or image != image.strip()):
        faults.add(f"{where}/image", said("must name an image, without spaces around it"), "required")
    for index, variable in enumerate(container.get("env") or []):
        name = variable.get("name")
        if name is not None and (not name or "=" in name or not name.isprintable() or not name.isascii()):
            faults.add(
                f"{where}/env/{index}/name",
                said("%(name)r is no variable name: printable ASCII without '='", name=name),
                "format",
            )
        if variable.get("value") and variable.get("valueFrom"):
            faults.add(f"{where}/env/{index}/valueFrom", said("stands beside value: give one of the two"), "conflict")
    _check_ports(container.get("ports") or [], f"{where}/ports", faults)
    _check_mounts(container.get("volumeMounts") or [], f"{where}/volumeMounts", volumes, faults)
    _check_resources(container.get("resources") or {}, f"{where}/resources", faults)


def _check_ports(ports: list[dict[str, Any]], where: str, faults: Faults) -> None:
    names: set[str] = set()
    for index, port in enumerate(ports):
        name = port.get("name")
        if not name:
            continue
        if len(name) > 15 or not _PORT_NAME.fullmatch(name):
            faults.add(
                f"{where}/{index}/name",
                said(
                    "%(name)r is no port name: at most 15 lower-case letters, digits and single '-', one letter at least",
                    name=name,
                ),
                "format",
            )
        elif name in names:
            faults.add(f"{where}/{index}/name", said("the port name %(name)r is used twice", name=name), "duplicate")
        names.add(name)


def _check_mounts(mounts: list[dict[str, Any]], where: str, volumes: set[str], faults: Faults) -> None:
    paths: set[str] = set()
    for index, mount in enumerate(mounts):
        name, path = mount.get("name"), mount.get("mountPath")
        if name is not None and name not in volumes:
            faults.add(
                f"{where}/{index}/name",
                said("there is no volume %(name)r: name one of the pod's volumes", name=name),
                "not_found",
            )
        if path is None:
            continue
        if not path:
            faults.add(f"{where}/{index}/mountPath", said("must be a path"), "required")
        elif path in paths:
            faults.add(
                f"{where}/{index}/mountPath", said("two volumes cannot both be mounted at %(path)r", path=path), "duplicate"
            )
        paths.add(path)


def _check_resources(resources: dict[str, Any], where: str, faults: Faults) -> None:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            _check_resource(name, quantity, f"{where}/{field}{pointer(name)}", faults)
    for name, quantity in requests.items():
        place = f"{where}/requests{pointer(name)}"
        if name not in limits:
            if name not in _NATIVE and not name.startswith("hugepages-") and "/" in name:
                faults.add(
                    place,
                    said("needs an equal limit: also write limits: %(name)s: %(quantity)s", name=name, quantity=quantity),
                    "required",
                )
        elif parse_quantity(quantity) > parse_quantity(limits[name]):
            faults.add(
                place,
                said(
                    "%(quantity)s is above the limit of %(limit)s: ask for that much at most",
                    quantity=quantity,
                    limit=limits[name],
                ),
                "range",
            )
        elif name not in _NATIVE and parse_quantity(quantity) != parse_quantity(limits[name]):
            faults.add(
                place,
                said(
                    "%(quantity)s must equal the limit of %(limit)s: %(name)s cannot be overcommitted",
                    quantity=quantity,
                    limit=limits[name],
                    name=name,
                ),
                "range",
            )


def _check_resource(name: str, quantity: Any, where: str, faults: Faults) -> None:
    if name not in _NATIVE and not name.startswith("hugepages-") and not ("/" in name and is_label_key(name)):
        faults.add(
            where,
            said("%(name)r is no resource: cpu, memory, ephemeral-storage, hugepages-… or domain/name", name=name),
            "unknown",
        )
    elif name not in _NATIVE and parse_quantity(quantity) % 1:
        faults.add(
            where,
            said("%(quantity)s is not whole: %(name)s is handed out in whole numbers", quantity=quantity, name=name),
            "format",
        )


def _check_toleration(toleration: dict[str, Any], where: str, faults: Faults) -> None:
    key, operator = toleration.get("key", ""), toleration.get("operator") or "Equal"
    if operator == "Exists" and toleration.get("value"):
        faults.add(f"{where}/value", said("must be empty when the operator is Exists"), "conflict")
    if not key and operator != "Exists":
        faults.add(f"{where}/operator", said("must be Exists when there is no key"), "conflict")
    if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
        faults.add(f"{where}/effect", said("must be NoExecute when tolerationSeconds is given"), "conflict")
