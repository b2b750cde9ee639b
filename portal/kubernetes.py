"""The embedded cluster for kubectl and for workers in other processes: tokens of the portal, and its rights.

People read what they see on the pages. They submit jobs, ask for actions on their own and delete them; whatever else is
written there takes `objects.apply`. Secrets and ConfigMaps are read with that right only.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from django.db import close_old_connections
from knox.auth import TokenAuthentication
from rest_framework.exceptions import AuthenticationFailed

from cluster import runtime
from cluster.access import ALL, Owned, policy
from cluster.embedded.http import KubernetesApi
from cluster.embedded.http.gate import Verb
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import FieldError, Forbidden, NotFound
from cluster.kinds import (
    COMMAND,
    CRON_JOB,
    EVENT,
    HYPER_NODE,
    JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    NAMESPACE,
    NODE,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    Kind,
)
from cluster.port import Cluster, Obj
from cluster.said import said
from jobs.keys import OWNER
from portal.reserved import reserved

PREFIX = "/kubernetes"
WITH_TOKEN = f"{PREFIX}/with-token/"

_READ = {
    **dict.fromkeys((JOB, JOB_FLOW, JOB_TEMPLATE, CRON_JOB, COMMAND), "jobs.view"),
    **dict.fromkeys((QUEUE, PRIORITY_CLASS), "queues.view"),
    **dict.fromkeys((NODE, HYPER_NODE, NAMESPACE), "nodes.view"),
    POD: "pods.view",
    POD_GROUP: "podgroups.view",
    EVENT: "events.view",
}
_ALL = "objects.apply"


class PortalGate:
    """Knox tokens, and the policy."""

    def user(self, token: str) -> Any | None:
        """Whose token it is."""
        close_old_connections()
        try:
            return TokenAuthentication().authenticate_credentials(token.encode())[0]
        except AuthenticationFailed:
            return None

    def may_read(self, user: Any, kind: Kind, part: str = "") -> bool:
        """By the right that shows the kind on the pages; logs have one of their own beside it.

        Objects are not rows: whom the policy shows only some rows reads nothing through this door.
        """
        may = policy().may
        if not self.sees_all(user) and policy().rights(user) != ALL:
            return False
        return may(user, _READ.get(kind, _ALL)) and (part != "log" or may(user, "logs.view"))

    def sees_all(self, user: Any) -> bool:
        """Those who may write everything are shown everything: the workers' own tokens are of such a user."""
        return policy().may(user, _ALL)

    def check_write(
        self, user: Any, cluster: Cluster, verb: Verb, kind: Kind, name: str, namespace: str, obj: Obj | None
    ) -> None:
        """Everything with `objects.apply`; else jobs to be submitted, and one's own to be acted on and deleted."""
        may = policy().may
        if kind == JOB and verb == "create" and obj is not None and may(user, "jobs.submit"):
            _sign(obj, user.get_username())
            faults = [] if may(user, _ALL) else reserved(kind, obj, cluster, lambda owner: may(user, "jobs.act", Owned(owner)))
            if faults:
                raise Forbidden("; ".join(f"{fault.pointer} {fault.message}" for fault in faults), faults)
            return
        if may(user, _ALL):
            return
        if kind == JOB and verb == "delete" and may(user, "jobs.act", _owner(cluster, name, namespace)):
            return
        if kind == COMMAND and verb == "create" and obj is not None and self._may_command(user, cluster, namespace, obj):
            return
        raise Forbidden(said("you may not %(verb)s %(kind)s", verb=verb, kind=kind))

    def _may_command(self, user: Any, cluster: Cluster, namespace: str, obj: Obj) -> bool:
        target = obj.get("target")
        meta = obj.get("metadata") or {}
        if (
            not isinstance(target, dict)
            or target.get("kind") != JOB.kind
            or meta.get("ownerReferences")
            or meta.get("finalizers")
        ):
            return False
        return policy().may(user, "jobs.act", _owner(cluster, str(target.get("name")), namespace))


def _owner(cluster: Cluster, name: str, namespace: str) -> Owned | None:
    try:
        notes = cluster.get(JOB, name, namespace)["metadata"].get("annotations") or {}
    except NotFound:
        return None
    return Owned(str(notes.get(OWNER) or ""))


def _sign(obj: Obj, user: str) -> None:
    """Write down who submits, whatever the manifest says."""
    meta = obj["metadata"]
    notes = meta.get("annotations")
    if notes is None or isinstance(notes, dict):
        meta["annotations"] = {**(notes or {}), OWNER: user}
    else:
        raise Forbidden(
            said("annotations are a mapping"), [FieldError("/metadata/annotations", said("must be a mapping"), "type")]
        )


def _embedded() -> EmbeddedCluster | None:
    """The cluster to be served; a real API server is asked without a detour."""
    current = runtime.current_or_none()
    return current if isinstance(current, EmbeddedCluster) else None


api = KubernetesApi(_embedded, PortalGate())


async def application(scope: Any, receive: Any, send: Any) -> None:
    """The ASGI application below `PREFIX`.

    kubectl sends no token over plain http. On this machine alone the address may hold it: `PREFIX/with-token/<token>/…`.
    """
    root, headers = PREFIX, scope["headers"]
    rest = scope["path"].removeprefix(WITH_TOKEN)
    if rest != scope["path"] and _is_local(scope):
        token = rest.partition("/")[0]
        root, headers = WITH_TOKEN + token, [*headers, (b"authorization", b"Bearer " + token.encode())]
    await api({**scope, "root_path": root, "headers": headers}, receive, send)


def _is_local(scope: Any) -> bool:
    """Whether both ends of the connection are this machine's own."""
    return all(end and ip_address(end[0]).is_loopback for end in (scope.get("client"), scope.get("server")))
