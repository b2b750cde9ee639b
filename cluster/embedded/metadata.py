"""The rules of `metadata` that the API server enforces for every kind, and the fields that only it may set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster.errors import FieldError
from cluster.kinds import NAMESPACE, SERVICE, Kind
from cluster.names import LABEL_ADVICE, SUBDOMAIN_ADVICE, is_dns_label, is_dns_subdomain
from cluster.port import Obj
from cluster.said import said
from cluster.selectors import is_label_key, is_label_value

SYSTEM_FIELDS = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip
_USER_FIELDS = (
    "name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "managedFields",
)  # fmt: skip
_ANNOTATIONS_LIMIT = 256 * 1024
_REFERENCE = ("apiVersion", "kind", "name", "uid")


def user_metadata(metadata: Any) -> dict[str, Any]:
    """The fields of `metadata` that a client decides about; the others, and empty ones, are left out."""
    return {field: metadata[field] for field in _USER_FIELDS if metadata.get(field) not in (None, "", {}, [])}


def metadata_faults(kind: Kind, obj: Obj) -> list[FieldError]:
    """Every fault in an object's metadata."""
    metadata = obj["metadata"]
    faults = _name_faults(kind, metadata.get("name"))
    if kind.namespaced and not _is_text(metadata.get("namespace"), is_dns_label):
        faults.append(
            FieldError(
                "/metadata/namespace",
                said(
                    "%(namespace)r is no namespace: %(advice)s",
                    namespace=metadata.get("namespace"),
                    advice=LABEL_ADVICE,
                ),
            )
        )
    faults += _map_faults("labels", metadata.get("labels"))
    faults += _map_faults("annotations", metadata.get("annotations"))
    faults += _finalizer_faults(metadata.get("finalizers"))
    faults += _owner_faults(metadata.get("ownerReferences"))
    return faults


def _is_text(value: Any, is_right: Callable[[str], bool]) -> bool:
    return isinstance(value, str) and is_right(value)


def _is_service_name(text: str) -> bool:
    return is_dns_label(text) and text[0].isalpha()


def _name_faults(kind: Kind, name: Any) -> list[FieldError]:
    if not name:
        return [FieldError("/metadata/name", said("a name (or a generateName) is required"), "required")]
    rule: str
    if kind == NAMESPACE:
        right, rule = _is_text(name, is_dns_label), LABEL_ADVICE
    elif kind == SERVICE:
        right, rule = (
            _is_text(name, _is_service_name),
            f"{LABEL_ADVICE}, the first a letter",
        )
    else:
        right, rule = _is_text(name, is_dns_subdomain), SUBDOMAIN_ADVICE
    return (
        []
        if right
        else [
            FieldError(
                "/metadata/name", said("%(name)r is no name of a %(kind)s: %(rule)s", name=name, kind=kind.kind, rule=rule)
            )
        ]
    )


def _map_faults(what: str, found: Any) -> list[FieldError]:
    pointer = f"/metadata/{what}"
    if found is None:
        return []
    if not isinstance(found, dict):
        return [FieldError(pointer, said("%(what)s are a mapping of text to text", what=what))]
    faults = []
    for key, value in found.items():
        here = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
        if not is_label_key(key.lower() if what == "annotations" else key):
            faults.append(
                FieldError(
                    here, said("%(key)r is no key: [prefix/]name, the name at most 63 letters, digits, '-', '_', '.'", key=key)
                )
            )
        if not isinstance(value, str):
            faults.append(FieldError(here, said("must be text, not %(value)s: put it in quotes", value=_json_name(value))))
        elif what == "labels" and not is_label_value(value):
            faults.append(
                FieldError(here, said("%(value)r is no label value: at most 63 letters, digits, '-', '_', '.'", value=value))
            )
    if not faults and what == "annotations" and sum(len(k) + len(v) for k, v in found.items()) > _ANNOTATIONS_LIMIT:
        faults.append(
            FieldError(
                pointer,
                said("annotations have at most %(most)s characters together", most=_ANNOTATIONS_LIMIT),
                "too_long",
            )
        )
    return faults


def _json_name(value: Any) -> str:
    if isinstance(value, bool):
        return said("true or false")
    names = {int: said("a number"), float: said("a number"), dict: said("a mapping"), list: said("a list")}
    return names.get(type(value), "null")


def _finalizer_faults(found: Any) -> list[FieldError]:
    if found is None:
        return []
    if not isinstance(found, list):
        return [FieldError("/metadata/finalizers", said("finalizers are a list of names"))]
    return [
        FieldError(f"/metadata/finalizers/{i}", said("%(name)r is no finalizer: [prefix/]name", name=name))
        for i, name in enumerate(found)
        if not (isinstance(name, str) and is_label_key(name))
    ]


def _owner_faults(found: Any) -> list[FieldError]:
    if found is None:
        return []
    if not isinstance(found, list):
        return [FieldError("/metadata/ownerReferences", said("ownerReferences are a list"))]
    faults = []
    for i, owner in enumerate(found):
        missing = [f for f in _REFERENCE if not (isinstance(owner, dict) and isinstance(owner.get(f), str) and owner[f])]
        faults += [FieldError(f"/metadata/ownerReferences/{i}/{f}", said("is required and is text"), "required") for f in missing]
    if not faults and sum(1 for owner in found if owner.get("controller") is True) > 1:
        faults.append(FieldError("/metadata/ownerReferences", said("only one owner can be the controller")))
    return faults
