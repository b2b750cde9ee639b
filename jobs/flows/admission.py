"""What a JobFlow and a JobTemplate are given and refused, on create, on update and on delete."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cluster import objects
from cluster.admission import Request
from cluster.errors import FieldError, Forbidden, NotFound
from cluster.kinds import JOB_FLOW, JOB_TEMPLATE
from cluster.names import LABEL_ADVICE, SUBDOMAIN_ADVICE, is_dns_subdomain
from cluster.pointers import pointer
from cluster.port import Obj, Reader
from cluster.said import said
from cluster.validation import Faults, check_shape, few, prune, without_nulls
from jobs.flows.parts import circle, job_name, job_spec
from jobs.flows.patching import PatchError
from jobs.flows.shapes import FlowShape, TemplateShape
from jobs.flows.status import ENDED, phase_of
from jobs.jobspec import check_job_spec
from jobs.manifest.template import check_labels

_LONGEST_JOB_NAME = 63
_MOST_PARTS = 1000
_PATH = re.compile(r"/[!-~]*")


@dataclass(frozen=True)
class FlowRules:
    """JobFlows: templates that are there, dependencies without a ring, probes about tasks that exist, patches that fit."""

    scheduler: str

    def default(self, request: Request) -> None:
        """Jobs are kept unless it is said otherwise."""
        spec = request.obj.get("spec")
        if isinstance(spec, dict) and not spec.get("jobRetainPolicy"):
            spec["jobRetainPolicy"] = "retain"

    def validate(self, request: Request) -> list[FieldError]:
        """Every fault. Once made, only `jobRetainPolicy` can change."""
        if request.operation == "DELETE":
            return []
        shape = check_shape(FlowShape, request.obj)
        flow = prune(request.obj, shape)
        faults = Faults(shape)
        if request.old is not None:
            _check_unchanged(flow, request.old, faults)
            return faults
        if not isinstance(flow.get("spec"), dict):
            return faults
        found = Faults()
        name = _check_name(flow.get("metadata") or {}, said("a flow"), found)
        _check_parts(flow, name, request, self.scheduler, found)
        return faults.with_apart(found)


@dataclass(frozen=True)
class TemplateRules:
    """JobTemplates: a sound job spec. One that an unfinished flow is made from cannot go."""

    scheduler: str

    def default(self, request: Request) -> None:
        """Nothing: a template stays as it was written, its jobs are given their defaults."""

    def validate(self, request: Request) -> list[FieldError]:
        """Every fault, also after a change: it counts for the jobs that are still to be made."""
        if request.operation == "DELETE":
            _check_unused(request.obj, request.reader)
            return []
        shape = check_shape(TemplateShape, request.obj)
        template = prune(request.obj, shape)
        found = Faults()
        name = _check_name(template.get("metadata") or {}, said("a job template"), found)
        if isinstance(template.get("spec"), dict):
            faults = check_job_spec(template["spec"], name, request.reader, self.scheduler, "/spec", "/metadata/name")
            found.extend(faults)
        return Faults(shape).with_apart(found)


def _check_name(meta: dict[str, Any], what: str, faults: Faults) -> str:
    """The name, or a stand-in for one that is to be generated; a bad one is told, and a harmless one given instead."""
    check_labels(meta, "/metadata", faults)
    name, generated = meta.get("name") or "", meta.get("generateName") or ""
    full = name or (generated and generated + "xxxxx")
    if not full:
        faults.add("/metadata/name", said("is required: %(advice)s", advice=SUBDOMAIN_ADVICE), "required")
    elif not is_dns_subdomain(full) or len(full) > _LONGEST_JOB_NAME:
        field = "name" if name else "generateName"
        faults.add(
            f"/metadata/{field}",
            said("%(name)r is no name of %(what)s: %(advice)s", name=name or generated, what=what, advice=LABEL_ADVICE),
            "format",
        )
        return "x"
    return full or "x"


def _check_unchanged(flow: Obj, old: Obj, faults: Faults) -> None:
    new_spec, old_spec = flow.get("spec") or {}, without_nulls(old["spec"])
    for field in sorted((new_spec.keys() | old_spec.keys()) - {"jobRetainPolicy"}):
        if new_spec.get(field) != old_spec.get(field):
            why = said("cannot change once the flow is made: only jobRetainPolicy can; make another flow")
            faults.add(pointer("spec", field), why, "immutable")


def _check_parts(flow: Obj, name: str, request: Request, scheduler: str, faults: Faults) -> None:
    parts = flow["spec"].get("flows") or []
    if not parts:
        faults.add("/spec/flows", said("must have at least one job: name a JobTemplate"), "required")
    if len(parts) > _MOST_PARTS:
        faults.add("/spec/flows", said("has %(count)s jobs: at most %(most)s", count=len(parts), most=_MOST_PARTS), "range")
        return
    places: dict[str, int] = {}
    for index, part in enumerate(parts):
        title = part.get("name")
        if title in places:
            told = said(
                "job %(index)s is made from %(title)r too: a template can stand in a flow once",
                index=places[title],
                title=title,
            )
            faults.add(f"/spec/flows/{index}/name", told, "duplicate")
        elif title:
            places[title] = index
    templates = _templates(flow, places, request.reader, faults)
    specs = {title: _job_spec(parts[places[title]], template, places[title], faults) for title, template in templates.items()}
    for title, index in places.items():
        _check_targets(parts[index], index, places, faults)
        _check_probe(parts[index], index, specs, faults)
        if (spec := specs.get(title)) is not None:
            faults.extend(_faults_of_job(name, parts[index], index, spec, request.reader, scheduler))
    ring = circle({title: _targets(parts[index], places) for title, index in places.items()})
    if ring:
        told = said("makes a circle, each waits for the next: %(ring)s; leave one of them out", ring=", ".join(ring[:10]))
        faults.add(f"/spec/flows/{places[ring[0]]}/dependsOn/targets", told, "cycle")


def _templates(flow: Obj, places: dict[str, int], reader: Reader, faults: Faults) -> dict[str, Obj]:
    """The templates that are there, by name."""
    namespace, found = objects.namespace(flow) or "default", {}
    for title, index in places.items():
        try:
            found[title] = reader.get(JOB_TEMPLATE, title, namespace)
        except NotFound:
            others = few(objects.namespace(t) for t in reader.list(JOB_TEMPLATE).items if objects.name(t) == title)
            wanted: dict[str, Any] = {"title": title, "namespace": namespace, "others": others}
            if others:
                told = said(
                    "there is no JobTemplate %(title)r in namespace %(namespace)r (there is one in %(others)s): "
                    "create it first or name another",
                    **wanted,
                )
            else:
                told = said(
                    "there is no JobTemplate %(title)r in namespace %(namespace)r: create it first or name another",
                    title=title, namespace=namespace,
                )  # fmt: skip
            faults.add(f"/spec/flows/{index}/name", told, "not_found")
    return found


def _job_spec(part: Obj, template: Obj, index: int, faults: Faults) -> dict[str, Any] | None:
    patch = part.get("patch") or {}
    if patch.get("spec") is not None and patch.get("jobSpec") is not None:
        faults.add(f"/spec/flows/{index}/patch/jobSpec", said("stands beside spec: give one of the two"), "conflict")
    try:
        return job_spec(template, part)
    except PatchError as error:
        faults.extend(FieldError(_patch_place(part, index) + f.pointer, f.message, f.code) for f in error.faults)
        return None


def _patch_place(part: Obj, index: int) -> str:
    return f"/spec/flows/{index}/patch/{'jobSpec' if (part.get('patch') or {}).get('jobSpec') is not None else 'spec'}"


def _faults_of_job(name: str, part: Obj, index: int, spec: Any, reader: Reader, scheduler: str) -> Iterable[FieldError]:
    """What would be refused of the job that this part becomes: told of the patch where there is one, else of the part."""
    named, patch = f"/spec/flows/{index}/name", _patch_place(part, index) if part.get("patch") else ""
    for fault in check_job_spec(spec, job_name(name, part["name"]), reader, scheduler, patch or "/spec", named):
        if patch or fault.pointer == named:
            yield fault
        else:
            told = said("makes a job that is refused: %(pointer)s %(message)s", pointer=fault.pointer, message=fault.message)
            yield FieldError(named, told, fault.code)


def _targets(part: Obj, places: dict[str, int]) -> list[str]:
    return [target for _, target in _said_targets(part) if target in places]


def _said_targets(part: Obj) -> list[tuple[int, str]]:
    """The targets with their places; what is no text was told with the shape."""
    told = enumerate((part.get("dependsOn") or {}).get("targets") or [])
    return [(at, target) for at, target in told if isinstance(target, str)]


def _check_targets(part: Obj, index: int, places: dict[str, int], faults: Faults) -> None:
    for at, target in _said_targets(part):
        if target not in places:
            told = said("there is no %(target)r in this flow: name one of %(places)s", target=target, places=few(places))
            faults.add(f"/spec/flows/{index}/dependsOn/targets/{at}", told, "not_found")


def _check_probe(part: Obj, index: int, specs: dict[str, Any], faults: Faults) -> None:
    depends = part.get("dependsOn") or {}
    probe, targets = depends.get("probe"), [target for _, target in _said_targets(part)]
    if not probe:
        return
    where = f"/spec/flows/{index}/dependsOn"
    if not targets:
        faults.add(f"{where}/targets", said("is required beside a probe: name the jobs whose pods are asked"), "required")
        return
    known = [
        task.get("name") or f"default{at}"
        for target in targets
        for at, task in enumerate((specs.get(target) or {}).get("tasks") or [])
        if isinstance(task, dict)
    ]
    whole = all(specs.get(target) is not None for target in targets)
    for field in ("httpGetList", "tcpSocketList", "taskStatusList"):
        for at, question in enumerate(probe.get(field) or []):
            place, role = f"{where}/probe/{field}/{at}", question.get("taskName")
            if role and whole and role not in known:
                faults.add(
                    f"{place}/taskName",
                    said("no target has a task %(role)r: name one of %(known)s", role=role, known=few(known)),
                    "not_found",
                )
            path, header = question.get("path") or "/", question.get("httpHeader") or {}
            if field == "httpGetList" and not _PATH.fullmatch(path):
                faults.add(
                    f"{place}/path",
                    said("%(path)r is no path: begin with '/', encode blanks and other signs", path=path),
                    "format",
                )
            text = f"{header.get('name') or ''}{header.get('value') or ''}"
            if not text.isprintable() or not text.isascii():
                faults.add(f"{place}/httpHeader", said("must be printable ASCII text"), "format")


def _check_unused(template: Obj, reader: Reader) -> None:
    """Raises Forbidden while an unfinished flow may still need the template."""
    name, namespace = objects.name(template), objects.namespace(template)
    for flow in reader.list(JOB_FLOW, namespace).items:
        parts = {part["name"] for part in flow["spec"].get("flows") or []}
        if name in parts and phase_of(flow) not in ENDED and not objects.is_deleting(flow):
            told = said(
                "job template %(namespace)s/%(name)s is used by flow %(flow)s, which has not ended: "
                "delete the flow first, or wait for its end",
                namespace=namespace, name=name, flow=objects.name(flow),
            )  # fmt: skip
            raise Forbidden(told)
