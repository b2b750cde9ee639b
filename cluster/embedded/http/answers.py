"""Refusals as the Kubernetes API words them: a Status."""

from __future__ import annotations

from cluster.errors import ApiError
from cluster.pointers import field_path
from cluster.port import Obj


def failure(error: ApiError) -> Obj:
    """The Status of a refusal, with a cause a field."""
    causes = [
        {"reason": "FieldValueInvalid", "message": fault.message, "field": field_path(fault.pointer)} for fault in error.fields
    ]
    return status("Failure", error.message, error.reason, error.status) | ({"details": {"causes": causes}} if causes else {})


def success(obj: Obj | None = None) -> Obj:
    """The Status of what was done and leaves nothing to show."""
    meta = (obj or {}).get("metadata") or {}
    return status("Success", "", "", 200) | ({"details": {"name": meta["name"], "uid": meta["uid"]}} if meta else {})


def status(outcome: str, message: str, reason: str, code: int) -> Obj:
    """A Status object."""
    said = {"message": message, "reason": reason} if message else {}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": outcome, **said, "code": code}
