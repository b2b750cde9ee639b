"""Network domains (HyperNodes) read off the labels of nodes: what the configuration asks for, and what follows from it. Pure.

The configuration is Volcano's: `networkTopologyDiscovery` in the key `volcano-controller.conf` of a ConfigMap.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cluster import objects
from cluster.documents import load
from cluster.errors import ApiError, FieldError
from cluster.kinds import HYPER_NODE
from cluster.pointers import pointer
from cluster.port import Obj
from cluster.said import said
from cluster.selectors import is_label_key

CONFIG_NAMESPACE, CONFIG_NAME, CONFIG_KEY = "volcano-system", "volcano-controller-configmap", "volcano-controller.conf"
SOURCE = "volcano.sh/network-topology-source"
LABEL_SOURCE = "label"
_LONGEST_TYPE = 20
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


class ConfigError(ValueError):
    """A configuration that cannot be read; `faults` say where and what would be right."""

    def __init__(self, faults: list[FieldError]) -> None:
        super().__init__("; ".join(f"{fault.pointer}: {fault.message}" for fault in faults))
        self.faults = faults


@dataclass(frozen=True)
class Domain:
    """One network domain: its tier, the label that makes it, and its members in order."""

    name: str
    tier: int
    key: str
    value: str
    members: tuple[str, ...] = field(default=())


def label_types(text: str) -> dict[str, list[str]]:
    """Topology type → label keys from the lowest tier up, of the label source; empty when it is not switched on.

    Raises ConfigError.
    """
    try:
        documents = load(text)
    except ApiError as error:
        raise ConfigError(list(error.fields) or [FieldError("", error.message)]) from error
    if len(documents) != 1:
        raise ConfigError([FieldError("", said("must be one YAML document, not %(count)s", count=len(documents)))])
    sources = documents[0].obj.get("networkTopologyDiscovery")
    faults: list[FieldError] = []
    found: dict[str, list[str]] = {}
    for index, source in enumerate(_listed(sources, "/networkTopologyDiscovery", faults)):
        where = pointer("networkTopologyDiscovery", index)
        if not isinstance(source, dict) or not isinstance(source.get("source"), str):
            faults.append(FieldError(f"{where}/source", said("must name a source: label")))
        elif not isinstance(source.get("enabled", False), bool):
            faults.append(FieldError(f"{where}/enabled", said("must be true or false")))
        elif source.get("enabled") and source["source"] == LABEL_SOURCE:
            found |= _types(source.get("config"), f"{where}/config", faults)
        elif source.get("enabled"):
            faults.append(
                FieldError(
                    f"{where}/source",
                    said("%(source)r is not served: only %(known)s is", source=source["source"], known=LABEL_SOURCE),
                )
            )
    if faults:
        raise ConfigError(faults)
    return found


def _listed(value: Any, where: str, faults: list[FieldError]) -> list[Any]:
    if value is not None and not isinstance(value, list):
        faults.append(FieldError(where, said("must be a list")))
        return []
    return value or []


def _types(config: Any, where: str, faults: list[FieldError]) -> dict[str, list[str]]:
    types = config.get("networkTopologyTypes") if isinstance(config, dict) else None
    where += "/networkTopologyTypes"
    if not isinstance(types, dict):
        faults.append(FieldError(where, said("must be a mapping from a type's name to its labels, the top tier first")))
        return {}
    found = {}
    for name, entries in types.items():
        place = where + pointer(name)
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_TYPE:
            faults.append(FieldError(place, said("a type's name has 1 to %(most)s characters", most=_LONGEST_TYPE)))
            continue
        keys = [entry.get("nodeLabel") if isinstance(entry, dict) else None for entry in _listed(entries, place, faults)]
        wrong = [index for index, key in enumerate(keys) if not isinstance(key, str) or not is_label_key(key)]
        faults += [FieldError(f"{place}/{index}/nodeLabel", said("must be the key of a node label")) for index in wrong]
        if not wrong and len(set(keys)) < len(keys):
            faults.append(FieldError(place, said("names a label twice")))
        elif not wrong and (not keys or keys[-1] != objects.HOSTNAME_LABEL):
            faults.append(FieldError(place, said("must end with %(label)s, the nodes themselves", label=objects.HOSTNAME_LABEL)))
        elif not wrong:
            found[name] = [str(key) for key in reversed(keys[:-1])]
    return found


def domains(types: Mapping[str, list[str]], nodes: Iterable[Obj]) -> list[Domain]:
    """The domains that the nodes' labels make, by name. A node that lacks a label stops at the tier below.

    Names follow from the label, so that the same nodes give the same domains whoever looks.
    """
    members: dict[tuple[str, str], dict[str, None]] = {}
    made: dict[tuple[str, str], Domain] = {}
    for node in sorted(nodes, key=objects.name):
        labels = objects.labels(node)
        for type_name in sorted(types):
            member = objects.name(node)
            for tier, key in enumerate(types[type_name], 1):
                value = labels.get(key)
                if not value:
                    break
                domain = made.setdefault((key, value), Domain(_name(type_name, tier, key, value), tier, key, value))
                if domain.tier != tier:
                    break  # another type has this label in another tier: its domains stand
                members.setdefault((key, value), {})[member] = None
                member = domain.name
    found = [Domain(d.name, d.tier, d.key, d.value, tuple(members.get(place, ()))) for place, d in made.items()]
    return sorted(found, key=lambda domain: domain.name)


def _name(type_name: str, tier: int, key: str, value: str) -> str:
    number, suffix = int.from_bytes(hashlib.sha256(f"{key}={value}".encode()).digest()[:8], "big"), ""
    for _ in range(5):
        number, digit = divmod(number, len(_LETTERS))
        suffix += _LETTERS[digit]
    clean = re.sub(r"[^a-z0-9.-]", "-", type_name.lower()).strip(".-") or "x"
    return f"hypernode-{clean}-tier{tier}-{suffix}"


def build(domain: Domain) -> Obj:
    """The HyperNode of a domain."""
    kind = "Node" if domain.tier == 1 else "HyperNode"
    return {
        "apiVersion": HYPER_NODE.api_version,
        "kind": HYPER_NODE.kind,
        "metadata": {"name": domain.name, "labels": {SOURCE: LABEL_SOURCE, domain.key: domain.value}},
        "spec": {
            "tier": domain.tier,
            "tierName": domain.key,
            "members": [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in domain.members],
        },
    }


def node_count(hyper_node: Obj, nodes: Iterable[Obj]) -> int:
    """How many names the members give: one that is written out counts whether or not it exists, a pattern counts nodes."""
    found: set[tuple[str, str]] = set()
    names: Mapping[str, Mapping[str, str]] | None = None
    for member in (hyper_node.get("spec") or {}).get("members") or ():
        selector = member.get("selector") or {}
        if exact := (selector.get("exactMatch") or {}).get("name"):
            found.add((member.get("type", "Node"), exact))
            continue
        names = names if names is not None else {objects.name(node): objects.labels(node) for node in nodes}
        found.update(("Node", name) for name in _matching(selector, names))
    return len(found)


def _matching(selector: Obj, names: Mapping[str, Mapping[str, str]]) -> list[str]:
    if pattern := (selector.get("regexMatch") or {}).get("pattern"):
        try:
            matcher = re.compile(pattern)
        except re.error:
            return []
        return [name for name in names if matcher.search(name)]
    if (wanted := selector.get("labelMatch")) is not None:
        return [name for name, labels in names.items() if objects.matches_selector(wanted, labels)]
    return []


__all__ = [
    "CONFIG_KEY", "CONFIG_NAME", "CONFIG_NAMESPACE", "LABEL_SOURCE", "SOURCE", "ConfigError", "Domain", "build", "domains",
    "label_types", "node_count",
]  # fmt: skip
