"""Putting the webhook configurations into a cluster, and their files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from cluster import documents, objects
from cluster.errors import NotFound
from cluster.kinds import Kind
from cluster.port import Cluster, Obj
from portal.crds.definitions import OURS
from portal.webhooks.definitions import CONDITIONS_SINCE, CONFIGURATIONS, MUTATING, VALIDATING, Wanted, configurations

MANAGER = "basalt"
_MANAGED = "app.kubernetes.io/managed-by"

Done = Literal["created", "updated", "unchanged", "deleted", "not there", "left as it is: somebody else installed it"]


@dataclass(frozen=True, slots=True)
class Installed:
    """What became of one configuration."""

    kind: Kind
    name: str
    done: Done


def install(cluster: Cluster, wanted: Wanted, *, dry_run: bool = False) -> Iterator[Installed]:
    """Create or update each. The bundles of authorities in them stay: `webhook-certificates` keeps these. Raises ApiError."""
    for new in configurations(wanted):
        kind, name = _kind(new), objects.name(new)
        old = _read(cluster, kind, name)
        if old is None:
            cluster.create(kind, new, field_manager=MANAGER, dry_run=dry_run)
            yield Installed(kind, name, "created")
        elif not _is_ours(old):
            yield Installed(kind, name, "left as it is: somebody else installed it")
        else:
            _keep_bundles(old, new)
            new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            now = cluster.replace(kind, new, field_manager=MANAGER, dry_run=dry_run)
            same = now["metadata"].get("generation") == old["metadata"].get("generation")
            yield Installed(kind, name, "unchanged" if same else "updated")


def remove(cluster: Cluster, *, dry_run: bool = False) -> Iterator[Installed]:
    """Delete those that are ours. Raises ApiError."""
    for kind, name in CONFIGURATIONS:
        old = _read(cluster, kind, name)
        if old is None:
            yield Installed(kind, name, "not there")
        elif not _is_ours(old):
            yield Installed(kind, name, "left as it is: somebody else installed it")
        else:
            cluster.delete(kind, name, uid=objects.uid(old), dry_run=dry_run)
            yield Installed(kind, name, "deleted")


def set_bundle(cluster: Cluster, bundle: str) -> list[str]:
    """Have our configurations trust these authorities (base64 of PEM); the names of those that changed. Raises ApiError."""
    changed = []
    for kind, name in CONFIGURATIONS:
        old = _read(cluster, kind, name)
        if old is None or not _is_ours(old):
            continue
        steps = [
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
            for index, webhook in enumerate(old.get("webhooks") or ())
            if webhook["clientConfig"].get("caBundle") != bundle
        ]
        if steps:
            same = {"op": "test", "path": "/metadata/resourceVersion", "value": old["metadata"]["resourceVersion"]}
            cluster.patch(kind, name, "", [same, *steps], patch_type="json", field_manager=MANAGER)
            changed.append(f"{kind.kind} {name}")
    return changed


def has_conditions(version: dict[str, Any]) -> bool:
    """Whether a server of this version (as `/version` says it) knows `matchConditions`."""
    digits = tuple(int("".join(filter(str.isdigit, str(version.get(part) or "0"))) or 0) for part in ("major", "minor"))
    return digits >= CONDITIONS_SINCE


def files(wanted: Wanted) -> Iterator[tuple[str, str]]:
    """File name and YAML of each configuration, as they lie in `deploy/webhooks/`."""
    for obj in configurations(wanted):
        verb = "mutating" if _kind(obj) == MUTATING else "validating"
        part = objects.name(obj).removeprefix("basalt").removeprefix("-")
        yield (f"{part}/{verb}.yaml" if part else f"{verb}.yaml"), documents.dump(obj)


def _kind(obj: Obj) -> Kind:
    return MUTATING if obj["kind"] == MUTATING.kind else VALIDATING


def _is_ours(obj: Obj) -> bool:
    return objects.labels(obj).get(_MANAGED) == OURS


def _read(cluster: Cluster, kind: Kind, name: str) -> Obj | None:
    try:
        return cluster.get(kind, name)
    except NotFound:
        return None


def _keep_bundles(old: Obj, new: Obj) -> None:
    """What the old one trusts the new one does too, also a webhook that it did not have."""
    known = {webhook["name"]: webhook["clientConfig"].get("caBundle") for webhook in old.get("webhooks") or ()}
    some = next((bundle for bundle in known.values() if bundle), None)
    for webhook in new["webhooks"]:
        if bundle := known.get(webhook["name"]) or some:
            webhook["clientConfig"]["caBundle"] = bundle
