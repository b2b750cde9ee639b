"""What people do with blueprints: make one, add a version, archive it, fill it out, and hold a job to it."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from cluster import documents, runtime
from cluster.errors import AlreadyExists, ApiError, BadRequest, Conflict, FieldError, Forbidden, Invalid, NotFound
from cluster.pointers import pointer
from cluster.port import Obj
from cluster.said import said, told
from jobs import keys, operations, writes
from jobs.blueprints import access, definition, locks, parameters
from jobs.blueprints.definition import Definition
from jobs.blueprints.filling import FillError, fill
from jobs.blueprints.models import Audience, AudienceKind, Blueprint, BlueprintUse, BlueprintVersion
from jobs.models import Job
from jobs.submit.clone import next_name, stripped
from jobs.submit.draft import Draft

MOST = 2_000
LONGEST = 262_144
_KINDS = {"groups": AudienceKind.GROUP, "queues": AudienceKind.QUEUE, "namespaces": AudienceKind.NAMESPACE}
_CLAIM = re.compile(r"([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)@([1-9][0-9]{0,8})")


@dataclass(slots=True)
class Wish:
    """What somebody fills in: the parameters' values, and what of the job is theirs to say."""

    values: Mapping[str, Any]
    name: str = ""
    namespace: str = ""
    queue: str = ""


@dataclass(slots=True)
class Filled:
    """A job filled out: its YAML and its manifest; what is wrong, by `/parameters/<name>`, or by pointers into the job."""

    text: str = ""
    manifest: Obj = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    faults: list[FieldError] = field(default_factory=list)


# -- definitions -------------------------------------------------------------------------------------------------------


def checked(source: str, user: Any) -> Definition:
    """A definition that can be kept: read, and its job, filled out with the defaults, one that the cluster would take.

    Raises BadRequest or Invalid with pointers into the definition.
    """
    if len(source) > LONGEST:
        raise BadRequest(_("A blueprint has at most 256 KiB."))
    found = definition.read(source.replace("\r\n", "\n"))
    properties = found.parameters.get("properties", {})
    if all("default" in each for each in properties.values()):
        document = documents.load(found.source)[0]
        try:
            tree = fill(found.job, parameters.complete(found.parameters, {}))[1]
            operations.submit(runtime.current(), _with_name(tree, "trial-of-blueprint"), owner=user.get_username(), dry_run=True)
        except FillError as error:
            raise Invalid(told(error), [FieldError("/spec/job", told(error))]) from error
        except (Invalid, BadRequest) as error:
            text = [_in_definition(document, each) for each in error.fields or (FieldError("", error.message),)]
            raise Invalid.of(definition.KIND, found.name, text) from error
    return found


def _in_definition(document: documents.Document, fault: FieldError) -> FieldError:
    where = "/spec/job" + fault.pointer
    line = document.line_of(where)
    return FieldError(
        where, said("line %(line)s: %(message)s", line=line, message=fault.message) if line else fault.message, fault.code
    )


def _with_name(tree: Obj, name: str) -> Obj:
    meta = dict(tree.get("metadata") or {}) if isinstance(tree.get("metadata"), dict) else {}
    return {**copy.deepcopy(tree), "metadata": {**meta, "name": name}}


def create(user: Any, source: str, note: str = "") -> Blueprint:
    """Keep a new blueprint; its owner is who makes it. Raises AlreadyExists, Invalid, BadRequest."""
    found = checked(source, user)
    if found.name == "new":
        text = _("A blueprint cannot be called %(name)s: choose another name.") % {"name": found.name}
        raise Invalid(text, [FieldError("/metadata/name", text, "reserved")])
    if Blueprint.objects.count() >= MOST:
        raise Conflict(_("There are %(most)s blueprints already.") % {"most": MOST})
    now = runtime.now()
    try:
        with transaction.atomic():
            row = Blueprint.objects.create(name=found.name, owner=user.get_username(), created_at=now, changed_at=now)
            _write(row, found, user, note)
    except IntegrityError as error:
        text = _("There is a blueprint %(name)s already: choose another name.") % {"name": found.name}
        raise AlreadyExists(text, [FieldError("/metadata/name", text, "taken")]) from error
    return row


def change(user: Any, row: Blueprint, source: str, *, base: int, note: str = "") -> Blueprint:
    """Add a version. `base` is the one that was edited; when another came in between, that is a Conflict and nothing is kept."""
    if not access.may_change(user, row):
        raise Forbidden(_("Only its owner and administrators may change this blueprint."))
    found = checked(source, user)
    if found.name != row.name:
        text = _("The name of a blueprint does not change: it is %(name)s.") % {"name": row.name}
        raise Invalid(text, [FieldError("/metadata/name", text, "immutable")])
    try:
        with transaction.atomic():
            held = Blueprint.objects.select_for_update().get(pk=row.pk)
            if held.current != base:
                raise _overtaken(held, base)
            if found.source == current(held).source:
                return held
            _write(held, found, user, note)
    except IntegrityError as error:  # where the database locks no rows, the number decides
        raise _overtaken(Blueprint.objects.get(pk=row.pk), base) from error
    return held


def _overtaken(row: Blueprint, base: int) -> Conflict:
    newest = current(row)
    return Conflict(
        _("%(who)s wrote version %(new)s while you edited version %(base)s. Nothing of yours was kept yet.")
        % {"who": newest.author, "new": newest.number, "base": base}
    )


def _write(row: Blueprint, found: Definition, user: Any, note: str) -> None:
    row.current += 1
    row.title, row.description, row.changed_at = found.title, found.description, runtime.now()
    BlueprintVersion.objects.create(
        blueprint=row,
        number=row.current,
        source=found.source,
        author=user.get_username(),
        note=" ".join(note.split())[:200],
        created_at=row.changed_at,
    )
    row.save()
    row.audience.all().delete()
    Audience.objects.bulk_create(
        [
            Audience(blueprint=row, kind=kind, value=value)
            for field_, kind in _KINDS.items()
            for value in found.audience.get(field_, ())
        ]
    )


def archive(user: Any, row: Blueprint, *, is_archived: bool) -> None:
    """Put it away, or bring it back. What was made from it keeps its version."""
    if not access.may_change(user, row):
        raise Forbidden(_("Only its owner and administrators may change this blueprint."))
    Blueprint.objects.filter(pk=row.pk).update(is_archived=is_archived, changed_at=runtime.now())


def current(row: Blueprint) -> BlueprintVersion:
    """Its newest version."""
    return row.versions.get(number=row.current)


def version(row: Blueprint, number: int | None) -> BlueprintVersion:
    """One of its versions, the newest unless told. Raises NotFound."""
    found = row.versions.filter(number=row.current if number is None else number).first()
    if found is None:
        raise NotFound(said("blueprint %(name)s has no version %(number)s", name=row.name, number=number))
    return found


# -- filling out -------------------------------------------------------------------------------------------------------


def fill_out(user: Any, made: BlueprintVersion, wish: Wish) -> Filled:
    """The job that somebody's values give, and everything that is wrong with it. Nothing is written."""
    found = definition.known(made.source)
    values = parameters.complete(found.parameters, wish.values)
    result = Filled(values=values)
    wrong = parameters.faults(found.parameters, values)
    result.faults = [FieldError("/parameters" + each.pointer, each.message, each.code) for each in wrong]
    try:
        text, tree = fill(found.job, values)
    except FillError as error:
        result.faults = result.faults or [FieldError("", told(error))]
        return result
    draft = Draft(text)
    draft.set(("metadata", "name"), wish.name or suggested_name(made.blueprint.name, wish.namespace or _namespace(tree)))
    for path, value in ((("metadata", "namespace"), wish.namespace), (("spec", "queue"), wish.queue)):
        if value:
            draft.set(path, value)
    notes = {keys.BLUEPRINT: f"{made.blueprint.name}@{made.number}"}
    if values:
        notes[keys.BLUEPRINT_PARAMETERS] = json.dumps(values, ensure_ascii=False, sort_keys=True)
    if draft.get(("metadata", "annotations")) is None:
        draft.set(("metadata", "annotations"), notes)
    else:
        for key, note in notes.items():
            draft.set(("metadata", "annotations", key), note)
    result.text = draft.text
    result.manifest = documents.load(draft.text)[0].obj
    if not result.faults:
        result.faults = _held(found, made, result.manifest, tree)
    return result


def suggested_name(stem: str, namespace: str) -> str:
    """A free name for a job, after the blueprint's."""
    rows = Job.objects.filter(namespace=namespace, deleted_at=None, name__startswith=stem[:50])
    taken = set(rows.values_list("name", flat=True))
    return next_name(stem[:50], taken) if f"{stem[:50]}-1" in taken else f"{stem[:50]}-1"


def _namespace(tree: Obj) -> str:
    meta = tree.get("metadata")
    return str(meta.get("namespace") or "default") if isinstance(meta, dict) else "default"


def _queue(tree: Obj) -> str:
    spec = tree.get("spec")
    return str(spec.get("queue") or "default") if isinstance(spec, dict) else "default"


def _held(found: Definition, made: BlueprintVersion, manifest: Obj, filled: Obj) -> list[FieldError]:
    """What of a manifest the blueprint does not allow: locked fields, and where its audience says that it may go."""
    faults = locks.changed(found.locked, manifest, filled)
    allowed: dict[str, set[str]] = {}
    for kind, value in made.blueprint.audience.values_list("kind", "value"):
        allowed.setdefault(kind, set()).add(value)
    places = (
        (AudienceKind.QUEUE, "/spec/queue", _queue(manifest)),
        (AudienceKind.NAMESPACE, "/metadata/namespace", _namespace(manifest)),
    )
    for kind, where, value in places:
        if kind in allowed and value not in allowed[kind]:
            names = ", ".join(sorted(allowed[kind]))
            faults.append(FieldError(where, _("The blueprint allows only %(names)s.") % {"names": names}, "forbidden"))
    return faults


def claim(user: Any, manifest: Any) -> BlueprintVersion | None:
    """The version that a manifest says it was filled out from, after it was held to it; None when it says nothing.

    The locked fields are compared with what the version gives for the parameters that the manifest names. Raises Invalid.
    """
    notes = _notes(manifest)
    claimed = notes.get(keys.BLUEPRINT)
    if claimed is None:
        return None
    where = pointer("metadata", "annotations", keys.BLUEPRINT)
    named = _CLAIM.fullmatch(claimed) if isinstance(claimed, str) else None
    row = access.visible(user).filter(name=named[1]).first() if named else None
    made = row.versions.filter(number=int(named[2])).select_related("blueprint").first() if row and named else None
    if made is None:
        fault = FieldError(where, _("There is no such blueprint, or none for you: leave the annotation out."), "not_found")
        raise Invalid.of("Job", _name(manifest), [fault])
    values = _values(notes)
    found = definition.known(made.source)
    faults = [
        FieldError(
            pointer("metadata", "annotations", keys.BLUEPRINT_PARAMETERS), f"{each.pointer[1:]}: {each.message}", each.code
        )
        for each in parameters.faults(found.parameters, values)
    ]
    if not faults:
        try:
            faults = _held(found, made, manifest, fill(found.job, values)[1])
        except FillError as error:
            faults = [FieldError(where, told(error))]
    if faults:
        raise Invalid.of("Job", _name(manifest), faults)
    return made


def claim_of(username: str, manifest: Any) -> BlueprintVersion | None:
    """The same for the user of this name; whoever is none sees no blueprint."""
    if keys.BLUEPRINT not in _notes(manifest):
        return None
    return claim(get_user_model().objects.filter(username=username).first() or AnonymousUser(), manifest)


def _notes(manifest: Any) -> dict[str, Any]:
    meta = manifest.get("metadata") if isinstance(manifest, dict) else None
    notes = meta.get("annotations") if isinstance(meta, dict) else None
    return notes if isinstance(notes, dict) else {}


def _name(manifest: Any) -> str:
    return str((manifest.get("metadata") or {}).get("name") or "")


def _values(notes: Mapping[str, Any]) -> Any:
    try:
        return orjson.loads(notes.get(keys.BLUEPRINT_PARAMETERS) or "{}")
    except (TypeError, ValueError):
        return None


def used(made: BlueprintVersion, uid: str, user: str) -> None:
    """Write down that a job was made from a version."""
    BlueprintUse.objects.get_or_create(job_uid=uid, defaults={"version": made, "user": user, "at": runtime.now()})


def from_job(job: Job) -> str:
    """A definition that begins as a job that ran: its manifest, no parameters yet."""
    if job.manifest.get("kind") != "Job" or not isinstance(job.manifest.get("spec"), dict):
        raise BadRequest(_("%(job)s was not submitted as a Job, so there is nothing to clone.") % {"job": job})
    obj = stripped(job.manifest, re.sub(r"-?[0-9]{1,6}$", "", job.name) or job.name)
    notes = obj["metadata"].get("annotations") or {}
    for key in (keys.BLUEPRINT, keys.BLUEPRINT_PARAMETERS):
        notes.pop(key, None)
    if not notes:
        obj["metadata"].pop("annotations", None)
    name = obj["metadata"]["name"].replace(".", "-")[:63].strip("-")
    return documents.dump(
        {
            "apiVersion": definition.API_VERSION,
            "kind": definition.KIND,
            "metadata": {"name": name},
            "spec": {
                "title": name,
                "description": "",
                "audience": {"queues": [], "groups": [], "namespaces": []},
                "parameters": {"type": "object", "required": [], "properties": {}},
                "locked": [],
                "job": obj,
            },
        },
        width=110,
    )


def submit(user: Any, made: BlueprintVersion, manifest: Any) -> Obj:
    """Submit a job of a version, held to it. Raises Invalid and what `writes.submit` does."""
    if made.blueprint.is_archived:
        raise Conflict(_("Blueprint %(name)s is archived: nothing new is made from it.") % {"name": made.blueprint.name})
    notes = _notes(manifest)
    if notes.get(keys.BLUEPRINT) != f"{made.blueprint.name}@{made.number}":
        where = pointer("metadata", "annotations", keys.BLUEPRINT)
        raise Invalid.of(
            "Job",
            _name(manifest),
            [FieldError(where, said("must be %(name)s@%(number)s", name=made.blueprint.name, number=made.number), "invalid")],
        )
    return writes.submit(manifest, user.get_username())


def fault_of(error: ApiError) -> list[FieldError]:
    """The faults of a refusal, also of one without fields."""
    return list(error.fields) or [FieldError("", error.message, error.reason)]
