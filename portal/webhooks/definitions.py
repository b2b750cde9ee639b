"""The webhook configurations: which writes an API server asks us about, where, and what happens while nobody answers.

Kinds of our own are not written unreviewed (`failurePolicy: Fail`). Pods are in configurations of their own: only those of our
schedulers are sent, in good time or not at all, so that nobody's pod ever waits for us.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cluster.kinds import Kind
from cluster.objects import QUEUE_GATE
from cluster.port import Obj
from jobs import keys
from portal.crds.definitions import OURS
from portal.webhooks.covered import COVERED, PODS, Covered

_GROUP, _VERSION = "admissionregistration.k8s.io", "v1"
MUTATING = Kind(_GROUP, _VERSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False)
VALIDATING = Kind(_GROUP, _VERSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False)
CONFIGURATIONS = tuple((kind, name) for name in ("basalt", "basalt-pods") for kind in (MUTATING, VALIDATING))
"""All that are made, by kind and name."""

CHOICE = "basalt.dev/admission"
"""Label: `ignore` on a namespace leaves it alone; `review` on a pod has it reviewed where the server knows no conditions."""
SERVICE, PORT = "basalt-webhook", 443
SECONDS, POD_SECONDS = 10, 2
CONDITIONS_SINCE = (1, 28)
"""The Kubernetes version from which on a configuration can say by an expression which objects are sent."""


@dataclass(frozen=True, slots=True)
class Where:
    """How the API server reaches us: a Service, or a URL in place of it."""

    namespace: str = "basalt-system"
    service: str = SERVICE
    port: int = PORT
    url: str = ""

    def client_config(self, path: str) -> Obj:
        """`clientConfig`, without the bundle of authorities."""
        if self.url:
            return {"url": self.url.rstrip("/") + path}
        return {"service": {"namespace": self.namespace, "name": self.service, "port": self.port, "path": path}}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the configurations depend on."""

    where: Where = field(default_factory=Where)
    schedulers: Sequence[str] = ("volcano", "basalt")
    conditions: bool = True
    """Whether the server knows `matchConditions`."""


def configurations(wanted: Wanted) -> Iterator[Obj]:
    """Each configuration in turn."""
    for (kind, name), pods in zip(CONFIGURATIONS, (False, False, True, True), strict=True):
        webhooks = _webhooks(kind, wanted, pods)
        meta = {"name": name, "labels": {"app.kubernetes.io/managed-by": OURS, "app.kubernetes.io/part-of": OURS}}
        yield {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "webhooks": webhooks}


def _webhooks(kind: Kind, wanted: Wanted, pods: bool) -> list[Obj]:
    found = []
    for covered in (PODS,) if pods else COVERED:
        operations = covered.mutated if kind == MUTATING else covered.validated
        if operations:
            found.append(_webhook(kind, covered, operations, wanted))
    return found


def _webhook(kind: Kind, covered: Covered, operations: Sequence[str], wanted: Wanted) -> Obj:
    verb, of = ("mutate" if kind == MUTATING else "validate"), covered.kind
    is_pod = covered is PODS
    webhook: Obj = {
        "name": f"{of.plural}.{verb}.basalt.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": wanted.where.client_config(f"/{verb}"),
        "rules": [
            {
                "apiGroups": [of.group],
                "apiVersions": [of.version],
                "resources": [of.plural],
                "operations": list(operations),
                "scope": "Namespaced" if of.namespaced else "Cluster",
            }
        ],
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "failurePolicy": "Ignore" if is_pod else "Fail",
        "timeoutSeconds": POD_SECONDS if is_pod else SECONDS,
    }
    if of.namespaced:
        webhook["namespaceSelector"] = _namespaces(wanted.where)
    if kind == MUTATING:
        webhook["reinvocationPolicy"] = "IfNeeded"  # what another webhook takes away is filled in again
    if is_pod:
        webhook |= _of_pods(kind, wanted)
    return webhook


def _namespaces(where: Where) -> Obj:
    """All but those that keep the cluster and ourselves alive, and those that want to be left alone."""
    own = ["kube-system", "kube-public", "kube-node-lease", *([] if where.url else [where.namespace])]
    return {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": own},
            {"key": CHOICE, "operator": "NotIn", "values": ["ignore"]},
        ]
    }


def _of_pods(kind: Kind, wanted: Wanted) -> Obj:
    if not wanted.conditions:
        return {"objectSelector": {"matchLabels": {CHOICE: "review"}}}
    names = ", ".join(map(json.dumps, wanted.schedulers))
    ours = {
        "name": "of-our-schedulers",
        "expression": f"has(object.spec.schedulerName) && object.spec.schedulerName in [{names}]",
    }
    if kind == MUTATING:
        notes = "object.metadata.annotations"
        gated = f'has({notes}) && "{QUEUE_GATE}" in {notes} && {notes}["{QUEUE_GATE}"] == "true"'
        return {"matchConditions": [ours, {"name": "asks-for-a-gate", "expression": gated}]}
    return {
        "matchConditions": [ours],
        "objectSelector": {"matchExpressions": [{"key": keys.JOB_NAME, "operator": "DoesNotExist"}]},
    }
