"""What the server says of itself: versions, groups, and the resources of each."""

from __future__ import annotations

from functools import cache

from cluster.kinds import KINDS, POD, Kind
from cluster.port import Obj

_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_SHORT = {
    "jobs.batch.volcano.sh": ["vcjob", "vj"], "cronjobs.batch.volcano.sh": ["cronvcjob", "cronvj"],
    "queues.scheduling.volcano.sh": ["q", "queue-v1beta1"], "podgroups.scheduling.volcano.sh": ["pg", "podgroup-v1beta1"],
    "jobflows.flow.volcano.sh": ["jf"], "jobtemplates.flow.volcano.sh": ["jt"], "hypernodes.topology.volcano.sh": ["hn"],
    "numatopologies.nodeinfo.volcano.sh": ["numatopo"], "pods": ["po"], "nodes": ["no"], "namespaces": ["ns"],
    "configmaps": ["cm"], "services": ["svc"], "events": ["ev"], "persistentvolumeclaims": ["pvc"],
    "persistentvolumes": ["pv"], "resourcequotas": ["quota"], "priorityclasses.scheduling.k8s.io": ["pc"],
}  # fmt: skip


def document(path: str, root: str = "") -> Obj | None:
    """The document at a path of the discovery API, which begins below `root`; None where there is none."""
    match [step for step in path.split("/") if step]:
        case ["version"]:
            return {"major": "1", "minor": "31", "gitVersion": "v1.31.0-basalt", "platform": "basalt/embedded"}
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["apis"]:
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups()}
        case ["apis", name]:
            return next(({"kind": "APIGroup", "apiVersion": "v1", **group} for group in _groups() if group["name"] == name), None)
        case ["api", "v1"]:
            return _resources("", "v1")
        case ["apis", group, version]:
            return _resources(group, version)
        case ["openapi", "v3"]:
            groups = dict.fromkeys(_place(kind) for kind in KINDS)
            return {"paths": {place: {"serverRelativeURL": f"{root}/openapi/v3/{place}"} for place in groups}}
        case ["openapi", "v3", *place]:
            return _schema("/".join(place))
    return None


def _place(kind: Kind) -> str:
    return f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"


@cache
def _schema(place: str) -> Obj | None:
    """As much of an OpenAPI document as tells kubectl that fields are checked here and not by itself."""
    kinds = [kind for kind in KINDS if _place(kind) == place]
    if not kinds:
        return None
    paths = {}
    for kind in kinds:
        inside = "namespaces/{namespace}/" if kind.namespaced else ""
        paths[f"/{place}/{inside}{kind.plural}/{{name}}"] = {
            "patch": {
                "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
                "responses": {},
                "x-kubernetes-action": "patch",
                "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
            }
        }
    return {"openapi": "3.0.0", "info": {"title": "Basalt", "version": "v1"}, "paths": paths}


@cache
def _groups() -> list[Obj]:
    names = dict.fromkeys((kind.group, kind.version) for kind in KINDS if kind.group)
    found = []
    for group in dict.fromkeys(group for group, _ in names):
        versions = [{"groupVersion": f"{group}/{version}", "version": version} for other, version in names if other == group]
        found.append({"name": group, "versions": versions, "preferredVersion": versions[0]})
    return found


@cache
def _resources(group: str, version: str) -> Obj | None:
    kinds = [kind for kind in KINDS if (kind.group, kind.version) == (group, version)]
    if not kinds:
        return None
    entries = [entry for kind in kinds for entry in _entries(kind)]
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}


def _entries(kind: Kind) -> list[Obj]:
    common = {"namespaced": kind.namespaced, "kind": kind.kind}
    entries: list[Obj] = [
        {
            "name": kind.plural,
            "singularName": kind.kind.lower(),
            **common,
            "verbs": _VERBS,
            **({"shortNames": _SHORT[str(kind)]} if str(kind) in _SHORT else {}),
        }
    ]
    if kind.has_status:
        entries.append({"name": f"{kind.plural}/status", "singularName": "", **common, "verbs": ["get", "patch", "update"]})
    if kind == POD:
        entries.append({"name": "pods/binding", "singularName": "", "namespaced": True, "kind": "Binding", "verbs": ["create"]})
        entries.append(
            {
                "name": "pods/eviction",
                "singularName": "",
                "namespaced": True,
                "group": "policy",
                "version": "v1",
                "kind": "Eviction",
                "verbs": ["create"],
            }
        )
        entries.append({"name": "pods/log", "singularName": "", "namespaced": True, "kind": "Pod", "verbs": ["get"]})
    return entries
