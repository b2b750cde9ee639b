"""A blueprint as a document: read, checked, written. It is what people edit, export and import, and what a version keeps."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml

from cluster import documents
from cluster.errors import ApiError, FieldError, Invalid
from cluster.names import LABEL_ADVICE, is_dns_label
from cluster.pointers import pointer
from cluster.port import Obj
from cluster.said import said
from jobs.blueprints import locks, parameters
from jobs.blueprints.filling import HOLE, hole_faults

API_VERSION, KIND = "basalt.dev/v1", "Blueprint"
AUDIENCE = ("groups", "queues", "namespaces")
_TEXTS = {"title": 120, "description": 2000}
_SPEC = frozenset({*_TEXTS, "audience", "parameters", "locked", "job"})


@dataclass(frozen=True)
class Definition:
    """What a version says. `job` is the text of the job to fill out, with its comments."""

    name: str
    title: str
    description: str
    audience: dict[str, list[str]]
    parameters: dict[str, Any]
    locked: list[str]
    job: str
    source: str = ""
    tree: Obj = field(default_factory=dict)


def read(source: str) -> Definition:
    """A definition from its text. Raises BadRequest (no YAML), or Invalid with every fault and its line in the message."""
    found = documents.load(source)
    document = found[0]
    faults = list(_faults(document.obj))
    if len(found) > 1:
        faults.insert(0, FieldError("", said("one blueprint at a time: the text holds several documents"), "invalid"))
    if faults:
        lines = [document.line_of(fault.pointer) for fault in faults]
        told = [
            FieldError(
                fault.pointer,
                said("line %(line)s: %(message)s", line=line, message=fault.message) if line else fault.message,
                fault.code,
            )
            for fault, line in zip(faults, lines, strict=True)
        ]
        raise Invalid.of(KIND, _name(document.obj), told)
    return _made(source, document.obj)


@lru_cache(maxsize=128)
def known(source: str) -> Definition:
    """The same of a text that was checked when it was kept: versions never change."""
    return _made(source, documents.load(source)[0].obj)


def _name(obj: Obj) -> str:
    meta = obj.get("metadata")
    return str(meta.get("name") or "") if isinstance(meta, dict) else ""


def _made(source: str, obj: Obj) -> Definition:
    spec = obj["spec"]
    audience = spec.get("audience") or {}
    return Definition(
        name=_name(obj),
        title=str(spec.get("title") or _name(obj)),
        description=str(spec.get("description") or ""),
        audience={kind: list(dict.fromkeys(audience.get(kind) or ())) for kind in AUDIENCE},
        parameters=spec.get("parameters") or {"type": "object", "properties": {}},
        locked=list(spec.get("locked") or ()),
        job=_job_text(source, spec["job"]),
        source=source,
        tree=spec["job"],
    )


def _job_text(source: str, job: Obj) -> str:
    """The lines of the job as they were written, comments included; written anew where that says something else."""
    try:
        node = _at(yaml.compose(source, Loader=yaml.SafeLoader), ("spec", "job"))
        lines = source.splitlines()[node.start_mark.line : node.end_mark.line] if node and not node.flow_style else []
        text = textwrap.dedent("\n".join(lines)).rstrip() + "\n"
        if lines and documents.load(text)[0].obj == job:
            return text
    except (ApiError, yaml.YAMLError, IndexError):
        return documents.dump(job)  # its lines alone are no document: they use an anchor of the text before
    return documents.dump(job)


def _at(node: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if not isinstance(node, yaml.MappingNode):
            return None
        node = next((value for key, value in node.value if key.value == step), None)
    return node


def _faults(obj: Obj) -> Iterator[FieldError]:
    if (obj.get("apiVersion"), obj.get("kind")) != (API_VERSION, KIND):
        yield FieldError(
            "/kind",
            said("a blueprint begins with apiVersion: %(api_version)s and kind: %(kind)s", api_version=API_VERSION, kind=KIND),
            "invalid",
        )
        return
    if not is_dns_label(_name(obj)):
        yield FieldError(
            "/metadata/name",
            said("%(name)r is no name of a blueprint: %(advice)s", name=_name(obj), advice=LABEL_ADVICE),
            "format",
        )
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        yield FieldError("/spec", said("is required: title, parameters, locked, audience and job"), "required")
        return
    for key in spec.keys() - _SPEC:
        yield FieldError(pointer("spec", key), said("is unknown: there are %(known)s", known=", ".join(sorted(_SPEC))), "unknown")
    for key, most in _TEXTS.items():
        if not isinstance(spec.get(key, ""), str) or len(spec.get(key, "")) > most:
            yield FieldError(f"/spec/{key}", said("is a text of at most %(most)s characters", most=most), "type")
    yield from _audience_faults(spec.get("audience"))
    schema = spec.get("parameters", {"type": "object", "properties": {}})
    wrong = list(parameters.schema_faults(schema))
    yield from (FieldError("/spec/parameters" + each.pointer, each.message, each.code) for each in wrong)
    yield from _job_faults(spec, frozenset() if wrong else frozenset(schema.get("properties", {})), check_names=not wrong)


def _audience_faults(audience: Any) -> Iterator[FieldError]:
    if audience is None:
        return
    if not isinstance(audience, dict):
        yield FieldError("/spec/audience", said("is a mapping of %(known)s", known=", ".join(AUDIENCE)), "type")
        return
    for key, names in audience.items():
        where = pointer("spec", "audience", key)
        if key not in AUDIENCE:
            yield FieldError(where, said("is unknown: there are %(known)s", known=", ".join(AUDIENCE)), "unknown")
        elif names is not None and not _are_names(names):
            yield FieldError(where, said("is a list of at most 100 names"), "type")


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 100 and all(isinstance(each, str) and 0 < len(each) <= 253 for each in value)


def _job_faults(spec: Obj, names: frozenset[str], *, check_names: bool) -> Iterator[FieldError]:
    locked = spec.get("locked")
    if locked is not None and not (isinstance(locked, list) and all(isinstance(each, str) for each in locked)):
        yield FieldError("/spec/locked", said("is a list of JSON pointers into the job"), "type")
    else:
        for index, each in enumerate(locked or ()):
            if wrong := locks.pointer_fault(each):
                yield FieldError(f"/spec/locked/{index}", wrong, "format")
    job = spec.get("job")
    if not isinstance(job, dict) or job.get("kind") != "Job" or not isinstance(job.get("spec"), dict):
        yield FieldError("/spec/job", said("is a Volcano Job: apiVersion, kind: Job, metadata and spec"), "type")
        return
    if check_names:
        yield from (FieldError("/spec/job" + each.pointer, each.message, each.code) for each in hole_faults(job, names))


def has_hole(value: Any) -> bool:
    """Whether a value is filled out."""
    return isinstance(value, str) and re.search(HOLE, value) is not None


EXAMPLE = """\
apiVersion: basalt.dev/v1
kind: Blueprint
metadata:
  name: {name}
spec:
  title: PyTorch, several nodes
  description: One master, and as many workers as you like.
  audience:               # whom it is for; what is left out does not narrow it
    queues: []
    groups: []
    namespaces: []
  parameters:             # a JSON Schema: the form is made of it
    type: object
    required: [image]
    properties:
      image:
        type: string
        title: Image
        pattern: ^[a-z0-9./:_-]+$
        default: pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime
      workers:
        type: integer
        title: Workers
        description: besides the master
        minimum: 1
        maximum: 16
        default: 2
        x-translations:
          zh-hans: {{title: 工作节点, description: 主节点除外}}
      gpus:
        type: integer
        title: GPUs a pod
        enum: [1, 2, 4, 8]
        default: 1
      script:
        type: string
        title: Command
        x-multiline: true
        default: torchrun train.py
  locked:                 # nobody changes these, neither in the editor nor by REST
    - /spec/policies
    - /spec/plugins
    - /spec/tasks/*/template/spec/restartPolicy
  job:
    apiVersion: batch.volcano.sh/v1alpha1
    kind: Job
    metadata:
      name: {name}
      namespace: default
    spec:
      queue: default
      minAvailable: ${{{{ workers + 1 }}}}   # the gang: together or not at all
      plugins:
        pytorch: ["--master=master", "--worker=worker", "--port=23456"]
      policies:
        - event: PodEvicted
          action: RestartJob
      tasks:
        - name: master
          replicas: 1
          policies:
            - event: TaskCompleted
              action: CompleteJob
          template:
            spec: &pod
              restartPolicy: Never
              containers:
                - name: train
                  image: ${{{{ image }}}}
                  command: [sh, -c, "${{{{ script }}}}"]
                  resources:
                    limits:
                      cpu: 4
                      memory: 16Gi
                      nvidia.com/gpu: ${{{{ gpus }}}}
        - name: worker
          replicas: ${{{{ workers }}}}
          template:
            spec: *pod
"""


def example(name: str = "pytorch-nodes") -> str:
    """What a new blueprint begins from."""
    return EXAMPLE.format(name=name)
