"""Apply: many documents at once, all or none. First every one is tried on a copy of what admission reads, in the order in which
they depend on each other; only when none was refused are they written.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cluster.access import Owned, policy
from cluster.documents import Document
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import ApiError, BadRequest, FieldError, Forbidden, Invalid, NotFound, sentences
from cluster.kinds import (
    CLAIM,
    CONFIG_MAP,
    CRON_JOB,
    CSI_CAPACITY,
    CSI_DRIVER,
    CSI_NODE,
    DEVICE_CLASS,
    DISRUPTION_BUDGET,
    HYPER_NODE,
    JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    KINDS,
    NAMESPACE,
    NETWORK_POLICY,
    NODE,
    NUMATOPOLOGY,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_QUOTA,
    RESOURCE_SLICE,
    SECRET,
    SERVICE,
    STORAGE_CLASS,
    VOLUME,
    Kind,
    by_api,
)
from cluster.port import Cluster, Obj
from cluster.projection import Batch
from cluster.rest.problems import AboutDocument, Refused
from cluster.said import said
from jobs.blueprints import operations as blueprints
from jobs.keys import OWNER
from jobs.manifest import default
from jobs.schedulers import scheduler_names
from portal.mirror import BATCH, PROJECTIONS
from portal.reserved import reserved

MANAGER = "basalt-apply"

ORDER: tuple[Kind, ...] = (
    NAMESPACE, PRIORITY_CLASS, QUEUE, NODE, HYPER_NODE, NUMATOPOLOGY, RESOURCE_QUOTA, CONFIG_MAP, SECRET,
    STORAGE_CLASS, CSI_DRIVER, CSI_NODE, CSI_CAPACITY, VOLUME, CLAIM,
    DEVICE_CLASS, RESOURCE_SLICE, RESOURCE_CLAIM_TEMPLATE, RESOURCE_CLAIM, SERVICE,
    NETWORK_POLICY, DISRUPTION_BUDGET, POD_GROUP, JOB_TEMPLATE, JOB, JOB_FLOW, CRON_JOB, POD,
)  # fmt: skip
"""Kinds that can be applied, what others name first."""

LATER = {"HyperJob": "jobs over several clusters"}
"""Kinds of Volcano that are known and not served yet."""

READ_BY_ADMISSION = (NAMESPACE, PRIORITY_CLASS, QUEUE, JOB_TEMPLATE)

OWNED = frozenset({JOB, JOB_FLOW, JOB_TEMPLATE, CRON_JOB, POD})
"""Kinds that belong to whom made them, who may change them."""

RIGHTS = {
    QUEUE: "queues.change",
    NODE: "nodes.change",
    HYPER_NODE: "nodes.change",
    NUMATOPOLOGY: "nodes.change",
    **dict.fromkeys(
        (
            POD_GROUP,
            JOB_TEMPLATE,
            JOB,
            JOB_FLOW,
            CRON_JOB,
            POD,
            CONFIG_MAP,
            SECRET,
            CLAIM,
            SERVICE,
            RESOURCE_CLAIM,
            RESOURCE_CLAIM_TEMPLATE,
        ),
        "jobs.submit",
    ),
}
"""What it takes to create; every other kind, and to change what is there, takes `objects.apply`."""


@dataclass(frozen=True)
class Item:
    """One document with its kind."""

    document: Document
    kind: Kind
    obj: Obj

    @property
    def name(self) -> str:
        return str(self.obj["metadata"].get("name") or "")

    @property
    def namespace(self) -> str:
        return str(self.obj["metadata"].get("namespace") or "default") if self.kind.namespaced else ""


@dataclass(frozen=True)
class Result:
    """What became of one document: created, configured or unchanged."""

    item: Item
    status: str
    obj: Obj

    def as_dict(self) -> dict[str, Any]:
        meta = self.obj["metadata"]
        return {
            "document": self.item.document.index,
            "apiVersion": self.item.kind.api_version,
            "kind": self.item.kind.kind,
            "namespace": meta.get("namespace", ""),
            "name": meta.get("name", ""),
            "uid": meta.get("uid", ""),
            "status": self.status,
        }


class Broken(ApiError):
    """A write failed although its trial had passed; what was written before it stays and is named."""

    def __init__(self, error: ApiError, results: Sequence[Result]) -> None:
        done = ", ".join(f"{r.item.kind.kind} {r.item.name} {r.status}" for r in results) or said("nothing")
        super().__init__(said("%(message)s (done before that: %(done)s)", message=error.message, done=done), error.fields)
        self.status, self.reason = error.status, error.reason


def apply(
    cluster: Cluster, documents: Sequence[Document], *, user: Any, dry_run: bool = False, namespace: str = "default"
) -> list[Result]:
    """Apply documents for a user, as far as the policy lets them. Results are in the documents' order.

    `namespace` is that of what names none.

    Raises Refused with every fault of every document, and then nothing was written.
    """
    if not documents:
        raise BadRequest(
            said("there is nothing to apply: send manifests, as JSON or YAML"), [FieldError("", said("is empty"), "empty")]
        )
    items = in_order(_recognise(documents, namespace))
    trial = _try(cluster, items, user)
    if dry_run:
        return _in_given_order(trial)
    results: list[Result] = []
    try:
        for item in items:
            try:
                results.append(_write(cluster, item, user.get_username()))
            except ApiError as error:
                raise AboutDocument(Broken(error, results), item.document) from error
    finally:
        _show(results)
        _tell_blueprints(results, user)
    return _in_given_order(results)


def _show(results: Sequence[Result]) -> None:
    """Project what was written, many at once, so that the next page shows it."""
    for kind in PROJECTIONS:
        written = [result.obj for result in results if result.item.kind == kind and result.status != "unchanged"]
        for start in range(0, len(written), BATCH):
            PROJECTIONS[kind].project(Batch(upserts=written[start : start + BATCH]))


def _tell_blueprints(results: Sequence[Result], user: Any) -> None:
    """Write down which new jobs were made from which blueprint."""
    for result in results:
        if result.item.kind == JOB and result.status == "created" and (made := blueprints.claim(user, result.item.obj)):
            blueprints.used(made, result.obj["metadata"]["uid"], user.get_username())


def _in_given_order(results: list[Result]) -> list[Result]:
    return sorted(results, key=lambda result: result.item.document.index)


def _recognise(documents: Sequence[Document], namespace: str) -> list[Item]:
    items, refusals = [], []
    seen: dict[tuple[Kind, str, str], Document] = {}
    for document in documents:
        try:
            item = _item(document, namespace)
            key = (item.kind, item.namespace, item.name)
            if item.name and key in seen:
                other = seen[key].line_of("/metadata/name")
                raise Invalid(
                    "",
                    [
                        FieldError(
                            "/metadata/name",
                            said(
                                "%(kind)s %(name)s is in line %(other)s already", kind=item.kind.kind, name=item.name, other=other
                            ),
                        )
                    ],
                )
            seen[key] = document
            items.append(item)
        except ApiError as error:
            refusals.append(AboutDocument(error, document))
    if refusals:
        raise _refused(refusals, len(documents))
    return items


def _item(document: Document, namespace: str) -> Item:
    obj = document.obj
    api_version, kind_name = obj.get("apiVersion"), obj.get("kind")
    kind = by_api(api_version, kind_name) if isinstance(api_version, str) and isinstance(kind_name, str) else None
    if kind is None or kind not in ORDER:
        raise BadRequest("", [_unknown(api_version, kind_name)])
    if not isinstance(obj.get("metadata"), dict):
        raise Invalid("", [FieldError("/metadata", said("must be a mapping with the object's name"), "required")])
    obj = copy.deepcopy(obj)
    obj.pop("status", None)
    if kind.namespaced and not obj["metadata"].get("namespace"):
        obj["metadata"]["namespace"] = namespace
    notes = obj["metadata"].get("annotations")
    if isinstance(notes, dict):
        notes.pop(OWNER, None)  # who owns a job is ours to say
    return Item(document, kind, obj)


def _unknown(api_version: Any, kind: Any) -> FieldError:
    if not isinstance(kind, str) or not kind:
        return FieldError("/kind", said("must name the kind of object"), "required")
    group = api_version.rpartition("/")[0] if isinstance(api_version, str) else ""
    if kind in LATER and group.endswith("volcano.sh"):
        later = said("%(kind)s: %(later)s are not served yet by this version of Basalt", kind=kind, later=LATER[kind])
        return FieldError("/kind", later, "not_served")
    of_kind = [k.api_version for k in ORDER if k.kind == kind]
    if of_kind:
        facts: dict[str, Any] = {"kind": kind, "known": ", ".join(of_kind), "api_version": api_version}
        return FieldError("/apiVersion", said("%(kind)s is known as %(known)s, not %(api_version)r", **facts), "unknown")
    if any(k.kind == kind and k.api_version == api_version for k in KINDS):
        return FieldError(
            "/kind", said("a %(kind)s is made by the cluster or by an action, not applied", kind=kind), "not_applied"
        )
    known = ", ".join(f"{k.kind} ({k.api_version})" for k in ORDER)
    return FieldError(
        "/kind",
        said(
            "%(kind)r of %(api_version)r is not a kind that Basalt knows; it knows %(known)s",
            kind=kind,
            api_version=api_version,
            known=known,
        ),
        "unknown",
    )


def in_order(items: Sequence[Item]) -> list[Item]:
    """What others depend on first: by kind, and queues below their parents; else as given."""
    depth = _depths([item for item in items if item.kind == QUEUE])
    rank = {kind: place for place, kind in enumerate(ORDER)}
    return sorted(items, key=lambda item: (rank[item.kind], depth.get(item.name, 0) if item.kind == QUEUE else 0))


def _depths(queues: Sequence[Item]) -> dict[str, int]:
    parents = {item.name: str((item.obj.get("spec") or {}).get("parent") or "") for item in queues if _has_spec(item)}
    depths = {}
    for name in parents:
        above, depth = parents[name], 0
        while above in parents and depth <= len(parents):  # a ring is refused by admission
            above, depth = parents[above], depth + 1
        depths[name] = depth
    return depths


def _has_spec(item: Item) -> bool:
    return isinstance(item.obj.get("spec") or {}, dict)


def _try(cluster: Cluster, items: Sequence[Item], user: Any) -> list[Result]:
    """Apply all on a copy. Raises Refused."""
    scratch = _scratch(cluster, items)
    results, refusals = [], []
    for item in items:
        try:
            _check_right(cluster, item, user)
            if item.kind == JOB:
                blueprints.claim(user, item.obj)
            results.append(_write(scratch, item, user.get_username()))
        except ApiError as error:
            refusals.append(AboutDocument(error, item.document))
    if refusals:
        raise _refused(sorted(refusals, key=lambda refusal: refusal.document.index), len(items))
    return results


def _scratch(cluster: Cluster, items: Sequence[Item]) -> EmbeddedCluster:
    """What admission rules read, and what is there already of what is applied, in a cluster of its own."""
    held: dict[tuple[Kind, str, str], Obj] = {}
    for kind in READ_BY_ADMISSION:
        for obj in cluster.list(kind).items:
            held[kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]] = obj
    for item in items:
        found = _existing(cluster, item)
        if found is not None:
            held[item.kind, item.namespace, item.name] = found
    version = max((int(obj["metadata"]["resourceVersion"]) for obj in held.values()), default=0)
    return EmbeddedCluster(start=(version, [(key[0], obj) for key, obj in held.items()]))


def _existing(cluster: Cluster, item: Item) -> Obj | None:
    if not item.name:
        return None
    try:
        return cluster.get(item.kind, item.name, item.namespace)
    except NotFound:
        return None


def _check_right(cluster: Cluster, item: Item, user: Any) -> None:
    may = partial(policy().may, user)
    existing = _existing(cluster, item)
    if existing is not None and item.kind in OWNED:
        owner = (existing["metadata"].get("annotations") or {}).get(OWNER, "")
        allowed = may("jobs.act", Owned(owner))
    elif existing is not None and item.kind not in (QUEUE, NODE, HYPER_NODE, NUMATOPOLOGY):
        allowed = may("objects.apply")
    else:
        allowed = may(RIGHTS.get(item.kind, "objects.apply"))
    if not allowed:
        verb = "create" if existing is None else "change"
        raise Forbidden(
            said("you may not %(verb)s %(kind)s %(name)s", verb=verb, kind=item.kind.kind, name=item.name or "(generated name)")
        )
    if not may("objects.apply") and (
        faults := reserved(item.kind, item.obj, cluster, lambda owner: may("jobs.act", Owned(owner)))
    ):
        raise Forbidden(said("%(faults)s", faults=sentences(faults)), faults)


def _write(cluster: Cluster, item: Item, user: str) -> Result:
    """Create, or change by an apply patch. Raises what the cluster refuses."""
    existing = _existing(cluster, item)
    obj = copy.deepcopy(item.obj)
    if item.kind in OWNED:
        owner = user if existing is None else (existing["metadata"].get("annotations") or {}).get(OWNER, "")
        notes = obj["metadata"].get("annotations")
        if owner and (notes is None or isinstance(notes, dict)):
            obj["metadata"]["annotations"] = {**(notes or {}), OWNER: owner}
    if item.kind == JOB:
        default(obj, scheduler_names()[0])  # lists are applied whole: what defaults add to them must not look like a change
    if item.name:
        made = cluster.patch(item.kind, item.name, item.namespace, obj, patch_type="apply", field_manager=MANAGER)
    else:
        made = cluster.create(item.kind, obj, field_manager=MANAGER)
    return Result(item, _status(existing, made), made)


def _status(existing: Obj | None, new: Obj) -> str:
    if existing is None:
        return "created"
    return "unchanged" if _said(new) == _said(existing) else "configured"


def _said(obj: Obj) -> Obj:
    """What people say in an object: a controller may write its status, and so its version, at any moment."""
    kept = {key: value for key, value in obj["metadata"].items() if key not in ("resourceVersion", "managedFields")}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": kept}


def _refused(refusals: list[AboutDocument], total: int) -> Refused:
    count = len({refusal.document.index for refusal in refusals})
    return Refused(said("%(count)s of %(total)s documents refused; nothing was written.", count=count, total=total), refusals)
