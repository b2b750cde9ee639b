"""An AdmissionReview (admission.k8s.io/v1) in, its answer out. Pure, but for what the rules read.

A refusal carries every fault with its field, as the API server's own refusals do. What the rules cannot decide, since they
fail or the cluster does not answer, raises: the caller of a webhook then does what its `failurePolicy` says.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from cluster import objects
from cluster.admission import Admission, Operation, Request
from cluster.errors import ApiError, BadRequest, FieldError, Forbidden, Invalid
from cluster.kinds import JOB_FLOW, JOB_TEMPLATE, QUEUE, Kind, by_api
from cluster.misspelt import misspelt
from cluster.pointers import field_path
from cluster.pointers import steps as steps_of
from cluster.port import Obj, Reader
from portal.crds.definitions import DEFINED
from portal.webhooks.difference import json_patch
from portal.webhooks.pending import Pending

API_VERSION = "admission.k8s.io/v1"
OPERATIONS: tuple[Operation, ...] = ("CREATE", "UPDATE", "DELETE")
MOST_CAUSES = 100
"""Faults that a refusal lists; its message says how many more there are."""
LONGEST_WARNING = 250
"""Characters: an API server cuts longer ones, and drops those beyond 4096 in all."""

SHAPES = {defined.kind: defined.shape for defined in DEFINED}
"""Which fields each kind has."""

_WEIGHED = frozenset({QUEUE, JOB_FLOW, JOB_TEMPLATE})
"""Kinds whose rules weigh an object against others of a moment ago. Few are written, so the cluster itself is read."""
_SYSTEM = ("managedFields", "resourceVersion", "generation", "finalizers", "ownerReferences", "uid", "creationTimestamp")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a review."""

    uid: str
    operation: Operation
    kind: Kind | None
    obj: Obj
    old: Obj | None
    dry_run: bool


def parse(body: bytes) -> Asked:
    """The request of a review. Raises BadRequest for anything else."""
    try:
        review = orjson.loads(body)
    except ValueError as error:
        raise BadRequest(f"the body is no JSON: {error}") from None
    if not isinstance(review, dict) or (review.get("apiVersion"), review.get("kind")) != (API_VERSION, "AdmissionReview"):
        raise BadRequest(f"the body is an AdmissionReview of {API_VERSION}")
    request = review.get("request")
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str) or not request["uid"]:
        raise BadRequest("an AdmissionReview has a request with a uid")
    if request.get("operation") not in OPERATIONS:
        raise BadRequest(f"the operation is one of {', '.join(OPERATIONS)}, not {request.get('operation')!r}")
    said = request.get("kind")
    if not isinstance(said, dict) or not all(isinstance(said.get(part, ""), str) for part in ("group", "version", "kind")):
        raise BadRequest("the request names a kind by group, version and kind")
    version = f"{said['group']}/{said.get('version', '')}" if said.get("group") else said.get("version", "")
    kind = by_api(version, said.get("kind", ""))
    old, new = (_object(request, field) for field in ("oldObject", "object"))
    obj = old if request["operation"] == "DELETE" else new
    if obj is None or (request["operation"] == "UPDATE" and old is None):
        raise BadRequest(f"a request to {request['operation']} comes with its object")
    before = None if request["operation"] == "CREATE" else old
    return Asked(request["uid"], request["operation"], kind, obj, before, request.get("dryRun") is True)


def _object(request: dict[str, Any], field: str) -> Obj | None:
    obj = request.get(field)
    if obj is None:
        return None
    if not isinstance(obj, dict):
        raise BadRequest(f"{field} is a mapping")
    meta = obj.setdefault("metadata", {})
    if not isinstance(meta, dict):
        raise BadRequest(f"{field}.metadata is a mapping")
    if request.get("namespace"):
        meta.setdefault("namespace", request["namespace"])
    if request.get("name"):
        meta.setdefault("name", request["name"])
    return obj


def mutate(asked: Asked, admission: Admission, reader: Reader) -> dict[str, Any]:
    """The answer with what the rules fill in, as a JSON patch. Nothing is refused here. Raises ApiError."""
    if asked.kind is None or asked.operation == "DELETE" or _is_leaving(asked):
        return _answer(asked, {"allowed": True})
    whole = objects.clone(asked.obj)
    admission.default(Request(asked.operation, asked.kind, whole, asked.old, reader))
    steps = json_patch(asked.obj, whole)
    if asked.old is not None:
        steps = [step for step in steps if not _is_as_before(step["path"], asked.obj, asked.old)]
    if not steps:
        return _answer(asked, {"allowed": True})
    return _answer(asked, {"allowed": True, "patchType": "JSONPatch", "patch": b64encode(orjson.dumps(steps)).decode()})


def validate(asked: Asked, admission: Admission, near: Reader, live: Reader, pending: Pending) -> dict[str, Any]:
    """Whether the object is let in. `near` is a copy that may lag, and so never has the last word of a refusal; `live` has.

    Raises ApiError when the cluster does not answer.
    """
    if asked.kind is None or _is_leaving(asked) or _is_unchanged(asked):
        return _answer(asked, {"allowed": True})
    try:
        if asked.kind in _WEIGHED:
            with pending.weighing(asked, live) as reader:
                answer = _judged(asked, admission, reader)
                if answer["response"]["allowed"]:
                    reader.let_in()
                return answer
        answer = _judged(asked, admission, near)
    except (Forbidden, BadRequest) as error:
        return _refused(asked, error)
    if answer["response"]["allowed"]:
        return answer
    try:
        return _judged(asked, admission, live)
    except (Forbidden, BadRequest) as error:
        return _refused(asked, error)


def _judged(asked: Asked, admission: Admission, reader: Reader) -> dict[str, Any]:
    assert asked.kind is not None
    old = asked.old
    new = objects.clone(asked.obj)
    if asked.operation == "UPDATE" and old is not None:  # it may be older than these webhooks: both count as what they mean
        old = objects.clone(old)
        for each in (old, new):
            admission.complete(Request("CREATE", asked.kind, each, None, reader))
    request = Request(asked.operation, asked.kind, new, old, reader)
    if faults := admission.faults(request):
        return _refused(asked, Invalid.of(asked.kind.kind, objects.name(asked.obj) or "", faults))
    advice = [*_misspelt(asked), *admission.advice(request)] if asked.operation != "DELETE" else []
    return _answer(asked, {"allowed": True, **({"warnings": [_short(said) for said in advice]} if advice else {})})


def _misspelt(asked: Asked) -> Iterator[str]:
    """Fields are kept that nobody knows: one that is nearly another's name is likely a mistake, which nothing else would tell."""
    shape = SHAPES.get(asked.kind) if asked.kind is not None else None
    for path, meant in misspelt(shape, asked.obj) if shape is not None else ():
        yield f"{path}: nobody knows this field, and it does nothing: {meant} is meant?"


def _is_leaving(asked: Asked) -> bool:
    """Whether a change is of an object that is being deleted: all that matters then is that it can go."""
    return asked.operation == "UPDATE" and objects.is_deleting(asked.old or {"metadata": {}})


def _is_unchanged(asked: Asked) -> bool:
    """Whether a change leaves alone what the rules judge: one that was let in earlier stays so for controllers' notes."""
    return asked.operation == "UPDATE" and asked.old is not None and _judged_part(asked.obj) == _judged_part(asked.old)


def _is_as_before(where: str, new: Obj, old: Obj) -> bool:
    """Whether a place is as it was, so that nothing is filled in there: an object older than these webhooks stays as it is."""
    found: list[Any] = []
    for value in (new, old):
        for step in steps_of(where):
            value = value.get(step) if isinstance(value, dict) else _item(value, step) if isinstance(value, list) else None
        found.append(value)
    return bool(found[0] == found[1])


def _item(values: list[Any], step: str) -> Any:
    return values[int(step)] if step.isdecimal() and int(step) < len(values) else None


def _judged_part(obj: Obj) -> Obj:
    meta = {field: value for field, value in obj["metadata"].items() if field not in _SYSTEM}
    return {**{field: value for field, value in obj.items() if field != "status"}, "metadata": meta}


def _refused(asked: Asked, error: ApiError) -> dict[str, Any]:
    assert asked.kind is not None
    causes = [_cause(fault) for fault in error.fields[:MOST_CAUSES]]
    message = error.message
    if len(error.fields) > MOST_CAUSES:
        message = f"{len(error.fields)} faults, the first of them: {error.fields[0].pointer}: {error.fields[0].message}"
    details = {"name": objects.name(asked.obj) or "", "group": asked.kind.group, "kind": asked.kind.kind, "causes": causes}
    status = {"status": "Failure", "code": error.status, "reason": error.reason, "message": message, "details": details}
    return _answer(asked, {"allowed": False, "status": status})


_REASONS = {"required": "FieldValueRequired", "duplicate": "FieldValueDuplicate", "not_found": "FieldValueNotFound"}


def _cause(fault: FieldError) -> dict[str, str]:
    return {
        "reason": _REASONS.get(fault.code, "FieldValueInvalid"),
        "field": field_path(fault.pointer),
        "message": fault.message,
    }


def _answer(asked: Asked, response: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": {"uid": asked.uid, **response}}


def _short(said: str) -> str:
    said = " ".join(said.split())
    return said if len(said) <= LONGEST_WARNING else said[: LONGEST_WARNING - 1] + "…"
