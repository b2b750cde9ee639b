"""The fields that each kind can be selected by, as in the API server (custom resources: name and namespace)."""

from __future__ import annotations

from cluster.kinds import EVENT, NAMESPACE, NODE, POD, SECRET, Kind

_EVERY = frozenset({"metadata.name", "metadata.namespace"})
_MORE = {
    POD: {
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.nominatedNodeName",
    },
    NODE: {"spec.unschedulable"},
    NAMESPACE: {"status.phase"},
    SECRET: {"type"},
    EVENT: {
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
        "reportingComponent", "source", "type",
    },
}  # fmt: skip
_SELECTABLE = {kind: _EVERY | fields for kind, fields in _MORE.items()}


def selectable(kind: Kind) -> frozenset[str]:
    """Dotted paths that a field selector over this kind may name."""
    return _SELECTABLE.get(kind, _EVERY)
