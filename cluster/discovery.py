"""The HyperNode controller: keeps the network domains that nodes' labels make, and counts the members of all of them.

Domains that it did not make (they carry another source, or none) are only counted.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator

from cluster import hypernodes, objects
from cluster.admission import PlainRules, Request
from cluster.errors import AlreadyExists, FieldError, NotFound
from cluster.informer import Change, IndexFunction, Informer
from cluster.kinds import CONFIG_MAP, HYPER_NODE, NODE, Kind
from cluster.pointers import pointer
from cluster.port import Cluster, Obj

FIELD_MANAGER = "basalt-discovery"
DISCOVERY = "*"
"""The key of the whole: derive the domains anew."""
_CONFIG = f"{hypernodes.CONFIG_NAMESPACE}/{hypernodes.CONFIG_NAME}"

log = logging.getLogger(__name__)


def _by_pattern(hyper_node: Obj) -> Iterator[str]:
    """Those whose members depend on which nodes there are."""
    members = (hyper_node.get("spec") or {}).get("members") or ()
    if any("exactMatch" not in (member.get("selector") or {}) for member in members):
        yield "yes"


class HyperNodeController:
    """Reconciles HyperNodes; keys are names behind a slash, and `*` for the discovery."""

    name = "hypernode"
    kinds: tuple[Kind, ...] = (HYPER_NODE, NODE, CONFIG_MAP)
    indexes: dict[tuple[Kind, str], IndexFunction] = {(HYPER_NODE, "pattern"): _by_pattern}  # noqa: RUF012

    def __init__(self, cluster: Cluster, informer: Informer) -> None:
        self._cluster, self._informer = cluster, informer

    def start(self) -> None:
        """Nothing is needed beforehand."""

    def keys(self, change: Change) -> Iterable[str]:
        """The domain itself; on a change of nodes those that match by pattern, and with the configuration the discovery."""
        if change.kind == CONFIG_MAP:
            return [DISCOVERY] if objects.key(change.object) == _CONFIG else ()
        if change.kind == HYPER_NODE:
            ours = objects.labels(change.object).get(hypernodes.SOURCE) == hypernodes.LABEL_SOURCE
            return [objects.key(change.object), *([DISCOVERY] if ours else [])]
        if change.kind != NODE or (change.old and change.new and objects.labels(change.old) == objects.labels(change.new)):
            return ()
        counted = [objects.key(found) for found in self._informer.by(HYPER_NODE, "pattern", "yes")]
        return [*counted, *([DISCOVERY] if self._informer.get(CONFIG_MAP, _CONFIG) is not None else [])]

    def reconcile(self, key: str) -> float | None:
        """Derive the domains, or count the members of one."""
        if key == DISCOVERY:
            self._discover()
            return None
        hyper_node = self._informer.get(HYPER_NODE, key)
        if hyper_node is None or objects.is_deleting(hyper_node):
            return None
        count = hypernodes.node_count(hyper_node, self._informer.all(NODE))
        if (hyper_node.get("status") or {}).get("nodeCount") != count:
            status = {"nodeCount": count}
            written = self._cluster.patch_status(HYPER_NODE, key[1:], "", status, uid=objects.uid(hyper_node))
            self._informer.observe(HYPER_NODE, written)
        return None

    def failed(self, key: str, error: Exception, failures: int) -> None:
        """Log it."""
        log.info("hypernode %s was not brought forward (failure %d in a row): %s", key, failures, error)

    def _discover(self) -> None:
        """Make what is missing, mend what differs, delete what is not found any more.

        A configuration that cannot be read changes nothing; one that is gone, or switched off, takes its domains with it.
        """
        config = self._informer.get(CONFIG_MAP, _CONFIG)
        ours = self._ours()
        if config is None and not ours:
            return
        try:
            types = hypernodes.label_types(str(((config or {}).get("data") or {}).get(hypernodes.CONFIG_KEY) or "{}"))
        except hypernodes.ConfigError as error:
            log.warning("the network topology configuration is not read: %s", error)
            return
        wanted = {domain.name: hypernodes.build(domain) for domain in hypernodes.domains(types, self._informer.all(NODE))}
        for name, obj in wanted.items():
            self._keep(obj, ours.get(name))
        for name, obj in ours.items():
            if name not in wanted and not objects.is_deleting(obj):
                with contextlib.suppress(NotFound):
                    self._cluster.delete(HYPER_NODE, name, uid=objects.uid(obj))

    def _ours(self) -> dict[str, Obj]:
        found = self._informer.all(HYPER_NODE)
        return {objects.name(o): o for o in found if objects.labels(o).get(hypernodes.SOURCE) == hypernodes.LABEL_SOURCE}

    def _keep(self, wanted: Obj, there: Obj | None) -> None:
        if there is None:
            try:
                made = self._cluster.create(HYPER_NODE, wanted, field_manager=FIELD_MANAGER)
            except AlreadyExists:
                log.warning("hypernode %s is there already and not ours; it is left alone", objects.name(wanted))
                return
            self._informer.observe(HYPER_NODE, made)
        elif there["spec"] != wanted["spec"] and not objects.is_deleting(there):
            body = {"metadata": {"uid": objects.uid(there)}, "spec": wanted["spec"]}
            patched = self._cluster.patch(HYPER_NODE, objects.name(there), "", body, field_manager=FIELD_MANAGER)
            self._informer.observe(HYPER_NODE, patched)


class DiscoveryRules(PlainRules):
    """Admission of the ConfigMap that says how domains are found: it must be one that can be read."""

    def check(self, request: Request) -> list[FieldError]:
        """Every fault of the configuration, at its key."""
        meta, data = request.obj.get("metadata") or {}, request.obj.get("data")
        named = (meta.get("namespace"), meta.get("name")) == (hypernodes.CONFIG_NAMESPACE, hypernodes.CONFIG_NAME)
        text = data.get(hypernodes.CONFIG_KEY) if isinstance(data, dict) else None
        if not named or not isinstance(text, str):
            return []
        try:
            hypernodes.label_types(text)
        except hypernodes.ConfigError as error:
            where = pointer("data", hypernodes.CONFIG_KEY)
            return [FieldError(where, f"{fault.pointer} {fault.message}".strip()) for fault in error.faults]
        return []
