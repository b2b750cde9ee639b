"""What is wrong with a draft, by the same rules that admit it: each fault with its line in the YAML and its place in the form."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from cluster import documents
from cluster.errors import ApiError, FieldError, Unavailable
from cluster.kinds import JOB
from cluster.port import Cluster, Obj
from cluster.said import told, words
from jobs import operations
from jobs.blueprints import operations as blueprints
from jobs.submit import forms
from jobs.submit.draft import Draft, DraftError

Trial = Callable[[Cluster, Sequence[documents.Document], Any], "list[Fault]"]
"""(cluster, documents, user) → what would be refused of several documents, or of things that are no Job."""

_trials: list[Trial] = []
_LINE = re.compile(r"\bline (\d+)")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing to mend. `line` counts from 1; `key` is the form's input that shows it, empty when none does."""

    message: str
    pointer: str = ""
    line: int | None = None
    key: str = ""


@dataclass(slots=True)
class Check:
    """A draft that was looked at. `job` is the manifest with defaults as it would be stored, None while there are faults.

    `inputs` is None when the text cannot be edited by the form: no YAML, several objects, or no Job.
    """

    text: str
    draft: Draft | None = None
    inputs: dict[str, forms.Input] | None = None
    faults: list[Fault] = field(default_factory=list)
    kinds: list[tuple[str, str]] = field(default_factory=list)
    job: Obj | None = None

    @property
    def is_bundle(self) -> bool:
        """Something else than one Job: it is applied as a whole, not submitted."""
        return self.draft is None and bool(self.kinds)


def try_bundles_with(trial: Trial) -> None:
    """Say how several documents are tried; the room above knows all kinds and the rights that they take."""
    _trials[:] = [trial]


def check(cluster: Cluster, text: str, *, user: Any, start: Mapping[str, str] | None = None, draft: Draft | None = None) -> Check:
    """Look at a text for a user. Nothing is written; only Unavailable is raised. `draft` saves reading the text once more."""
    result = Check(text)
    try:
        found = documents.load(text)
    except ApiError as error:
        result.faults = [_syntax(fault) for fault in error.fields or (FieldError("", error.message),)]
        return result
    if not found:
        result.faults = [Fault(_("Write a manifest, or begin with one of the shapes above."))]
        return result
    if len(found) > 1 or found[0].obj.get("kind") != JOB.kind or found[0].obj.get("apiVersion") != JOB.api_version:
        result.kinds = [(_kind_of(each.obj), name_of(each.obj)) for each in found]
        result.faults = [fault for trial in _trials for fault in trial(cluster, found, user)]
        return result
    try:
        result.draft = draft if draft is not None and draft.text == text else Draft(text)
    except DraftError as error:
        result.faults = [Fault(words(told(error)), line=error.line)]
        return result
    result.inputs = forms.inputs(result.draft, start)
    _admit(cluster, result, found[0], user.get_username())
    return result


def _admit(cluster: Cluster, result: Check, document: documents.Document, owner: str) -> None:
    try:
        blueprints.claim_of(owner, document.obj)
        result.job = operations.submit(cluster, document.obj, owner=owner, dry_run=True)
    except Unavailable:
        raise
    except ApiError as error:
        refuse(result, error, document)


def refuse(result: Check, error: ApiError, document: documents.Document | None = None) -> None:
    """Add what the cluster refused, at its line and its input."""
    document = document or next(iter(documents.load(result.text)), None)
    fields: Sequence[FieldError] = error.fields or (FieldError("/metadata/name" if error.status == 409 else "", error.message),)
    for each in fields:
        message = words(each.message)
        shown = forms.blame(result.inputs, each.pointer, message) if result.inputs else None
        line = document.line_of(each.pointer) if document else None
        result.faults.append(Fault(message, each.pointer, line, shown.key if shown else ""))
    result.job = None


def _syntax(fault: FieldError) -> Fault:
    line = _LINE.search(fault.message)
    return Fault(words(fault.message), fault.pointer, int(line[1]) if line else None)


def _kind_of(obj: Any) -> str:
    kind = obj.get("kind")
    return kind if isinstance(kind, str) else ""


def name_of(obj: Any) -> str:
    """The name that a document gives its object."""
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    return str(meta.get("name") or meta.get("generateName") or "") if isinstance(meta, dict) else ""
