"""What pages and REST say of blueprints: rows with their use, versions, and one filled out as a form shows it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Count, Max, QuerySet
from django.urls import reverse

from cluster.access import policy
from cluster.pointers import steps
from cluster.said import words
from jobs.blueprints import definition, parameters
from jobs.blueprints.access import visible
from jobs.blueprints.definition import Definition
from jobs.blueprints.models import AudienceKind, Blueprint, BlueprintUse, BlueprintVersion
from jobs.blueprints.operations import Filled
from jobs.models import Job

Body = dict[str, Any]


def with_use(rows: QuerySet[Blueprint]) -> QuerySet[Blueprint]:
    """Each with how many jobs were made from it, `uses`, and when the last was, `used_at`."""
    return (
        rows.annotate(uses=Count("versions__uses"), used_at=Max("versions__uses__at"))
        .prefetch_related("audience")
        .order_by("title", "name")
    )


def audience(row: Blueprint) -> dict[str, list[str]]:
    """Whom it is for, by kind."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for each in row.audience.all():
        found[each.kind].append(each.value)
    return {f"{kind.value}s": sorted(found[kind]) for kind in AudienceKind}


def row_of(row: Any) -> Body:
    """One as REST lists it; `row` comes from `with_use`."""
    return {
        "name": row.name,
        "title": row.title,
        "description": row.description,
        "owner": row.owner,
        "version": row.current,
        "archived": row.is_archived,
        "audience": audience(row),
        "uses": row.uses,
        "used_at": row.used_at.isoformat() if row.used_at else None,
        "created_at": row.created_at.isoformat(),
        "changed_at": row.changed_at.isoformat(),
    }


def version_row(made: Any) -> Body:
    """One version in a list."""
    return {
        "version": made.number,
        "author": made.author,
        "note": made.note,
        "created_at": made.created_at.isoformat(),
        "uses": made.jobs,
    }


def versions(row: Blueprint) -> QuerySet[BlueprintVersion]:
    """Its versions, the newest first, each with the number of `jobs` that were made from it."""
    return row.versions.annotate(jobs=Count("uses")).order_by("-number")


def version_full(made: BlueprintVersion) -> Body:
    """What a version says."""
    found = definition.known(made.source)
    return {
        "version": made.number,
        "parameters": found.parameters,
        "locked": found.locked,
        "job": found.tree,
        "source": made.source,
    }


def used_by(user: Any, row: Blueprint, most: int) -> list[Job]:
    """The newest jobs that were made from it, of those that the user may see."""
    uids = BlueprintUse.objects.filter(version__blueprint=row).values("job_uid")
    jobs = policy().visible(user, Job.objects.filter(uid__in=uids)).defer("manifest", "verdict")
    return list(jobs.order_by("-created_at")[:most])


def named(user: Any, said: str) -> Body | None:
    """The same of what a manifest says, `<name>@<version>`; None where there is no such version, or none for this user."""
    name, _at, number = said.partition("@")
    row = visible(user).filter(name=name).first() if number.isdecimal() and len(number) < 10 else None
    if row is None or not 0 < int(number) <= row.current:
        return None
    return _told(row, int(number))


def _told(row: Blueprint, number: int) -> Body:
    where = f"{reverse('jobs:blueprint', args=[row.name])}?version={number}"
    return {"name": row.name, "title": row.title, "version": number, "current": row.current, "url": where}


def origin_of(user: Any, job_uid: str) -> Body | None:
    """The blueprint and the version that a job was made from, if the user may see that blueprint: label and address."""
    use = BlueprintUse.objects.filter(job_uid=job_uid).select_related("version").defer("version__source").first()
    row = visible(user).filter(pk=use.version.blueprint_id).first() if use else None
    if row is None or use is None:
        return None
    return _told(row, use.version.number)


@dataclass(slots=True)
class Form:
    """The inputs of one version as a page shows them, with what is wrong at each; `faults` are those without an input."""

    parameters: list[parameters.Parameter]
    name: str
    namespace: str
    queue: str
    queues: list[str]
    namespaces: list[str]
    queue_locked: bool
    errors: dict[str, list[str]] = field(default_factory=dict)
    faults: list[Any] = field(default_factory=list)


def form(made: BlueprintVersion, filled: Filled, offered: Iterable[str], given: Mapping[str, Any]) -> Form:
    """Put values and faults at their inputs. `given` are the values as they were posted, also wrong ones."""
    found = definition.known(made.source)
    inputs = parameters.shown(found.parameters, given)
    allowed = audience(made.blueprint)
    queues = [name for name in offered if not allowed["queues"] or name in allowed["queues"]]
    spec, meta = filled.manifest.get("spec") or {}, filled.manifest.get("metadata") or {}
    result = Form(
        inputs,
        str(meta.get("name") or ""),
        str(meta.get("namespace") or "default"),
        str(spec.get("queue") or "default"),
        queues,
        allowed["namespaces"],
        any(each in ("/spec", "/spec/queue", "/spec/*") for each in found.locked) or definition.has_hole(_queue_of(found)),
    )
    by_name = {each.name: each for each in inputs}
    places = {"/metadata/name": "name", "/metadata/namespace": "namespace", "/spec/queue": "queue"}
    for fault in filled.faults:
        path = steps(fault.pointer)
        if path[:1] == ["parameters"] and len(path) > 1 and path[1] in by_name:
            by_name[path[1]].errors.append(words(fault.message))
        elif fault.pointer in places:
            result.errors.setdefault(places[fault.pointer], []).append(words(fault.message))
        else:
            result.faults.append(replace(fault, message=words(fault.message)))
    return result


def _queue_of(found: Definition) -> Any:
    spec = found.tree.get("spec")
    return spec.get("queue") if isinstance(spec, dict) else None
