"""The definitions themselves: names, columns and subresources as Volcano's users know them, schemas from the shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from cluster import kinds
from cluster.columns import COLUMNS, Column
from cluster.kinds import Kind
from cluster.rules import HyperNodeShape, NumatopologyShape
from jobs.cron.shapes import CronShape
from jobs.flows.shapes import FlowShape, TemplateShape
from jobs.manifest.companions import CommandShape, GroupShape
from jobs.manifest.shapes import JobShape
from portal.crds.rules import tighten
from portal.crds.schema import structural
from portal.crds.words import explain
from queues.shapes import QueueShape

OURS = "basalt"
"""Value of the label `app.kubernetes.io/managed-by` on what Basalt installs; others' definitions are left alone."""


@dataclass(frozen=True, slots=True)
class Defined:
    """A kind, the shape of its objects and its short names."""

    kind: Kind
    shape: type[BaseModel]
    short: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`plural.group`, which is a definition's name."""
        return str(self.kind)


DEFINED: tuple[Defined, ...] = (
    Defined(kinds.JOB, JobShape, ("vcjob", "vj")),
    Defined(kinds.CRON_JOB, CronShape, ("cronvcjob", "cronvj")),
    Defined(kinds.COMMAND, CommandShape),
    Defined(kinds.QUEUE, QueueShape, ("q", "queue-v1beta1")),
    Defined(kinds.POD_GROUP, GroupShape, ("pg", "podgroup-v1beta1")),
    Defined(kinds.HYPER_NODE, HyperNodeShape, ("hn",)),
    Defined(kinds.NUMATOPOLOGY, NumatopologyShape, ("numatopo",)),
    Defined(kinds.JOB_FLOW, FlowShape, ("jf",)),
    Defined(kinds.JOB_TEMPLATE, TemplateShape, ("jt",)),
)


def definition(defined: Defined) -> dict[str, Any]:
    """One CustomResourceDefinition (apiextensions.k8s.io/v1)."""
    kind = defined.kind
    version: dict[str, Any] = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": explain(tighten(_schema(defined.shape), defined.name), kind.kind)},
    }
    if kind.has_status:
        version["subresources"] = {"status": {}}
    if columns := COLUMNS.get(kind):
        version["additionalPrinterColumns"] = [_column(column) for column in columns]
    names = {"kind": kind.kind, "listKind": f"{kind.kind}List", "plural": kind.plural, "singular": kind.kind.lower()}
    if defined.short:
        names["shortNames"] = list(defined.short)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": defined.name, "labels": {"app.kubernetes.io/managed-by": OURS}},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


def _schema(shape: type[BaseModel]) -> dict[str, Any]:
    """A whole object: the server itself knows what metadata is, and admission has no say in a status."""
    schema = structural(shape)
    schema["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        **schema["properties"],
        "metadata": {"type": "object"},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    return schema


def _column(column: Column) -> dict[str, Any]:
    said: dict[str, Any] = {"name": column.name, "jsonPath": column.path, "type": column.type}
    return {**said, "priority": 1} if column.wide else said
