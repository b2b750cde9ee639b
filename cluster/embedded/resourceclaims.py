"""The controller of resource claims of the embedded cluster: makes those of templates, and lets go what nobody uses."""

from __future__ import annotations

import contextlib
import hashlib

from cluster import objects
from cluster.errors import AlreadyExists, Conflict, NotFound
from cluster.kinds import POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from cluster.port import Cluster, Obj, WatchEvent

KINDS = (RESOURCE_CLAIM_TEMPLATE, RESOURCE_CLAIM)
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
_ENDED = ("Succeeded", "Failed")
_MANAGER = "resource-claim-controller"


class ResourceClaimKeeper:
    """Claims and their users. `take` notes what changed, `work` acts on it; all in one thread."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pods: dict[tuple[str, str], None] = {}
        self._claims: dict[tuple[str, str], None] = {}
        self._used: dict[str, set[tuple[str, str]]] = {}
        self._lacking: set[tuple[str, str]] = set()

    def take(self, event: WatchEvent) -> None:
        """Note what an event may have made possible."""
        obj = event.object
        key = objects.namespace(obj), objects.name(obj)
        if event.kind == POD and (obj.get("spec") or {}).get("resourceClaims"):
            gone = event.type == "DELETED"
            if gone or _is_over(obj):
                self._claims.update(dict.fromkeys(sorted(self._used.pop(objects.uid(obj), ()))))
                self._lacking.discard(key)
            if not gone:
                self._pods[key] = None
        elif event.kind == RESOURCE_CLAIM:
            for user in (obj.get("status") or {}).get("reservedFor") or ():
                self._used.setdefault(str(user.get("uid")), set()).add(key)
            if event.type != "DELETED":
                self._claims[key] = None
        elif event.kind == RESOURCE_CLAIM_TEMPLATE and event.type != "DELETED":
            self._pods.update(dict.fromkeys(sorted(self._lacking)))

    def work(self) -> int:
        """Do all that is noted; how many objects were written."""
        pods, self._pods = self._pods, {}
        claims, self._claims = self._claims, {}
        written = 0
        for work, keys in ((self._pod, pods), (self._claim, claims)):
            for key in keys:
                try:
                    written += work(key)
                except (NotFound, Conflict):
                    continue  # it comes again by its event
        return written

    # -- pods --------------------------------------------------------------------------------------------------------------

    def _pod(self, key: tuple[str, str]) -> int:
        """Make the claims that a pod has by templates, and say in its status what they are called."""
        pod = self._cluster.get(POD, key[1], key[0])
        if objects.is_deleting(pod) or _is_over(pod):
            return self._drop(pod)
        status = pod.get("status") or {}
        known = {each.get("name"): each for each in status.get("resourceClaimStatuses") or ()}
        made = dict(known)
        for each in pod["spec"]["resourceClaims"]:
            template = each.get("resourceClaimTemplateName")
            if template and each["name"] not in known:
                try:
                    found = self._cluster.get(RESOURCE_CLAIM_TEMPLATE, str(template), key[0])
                except NotFound:
                    self._lacking.add(key)
                    continue
                made[each["name"]] = {"name": each["name"], "resourceClaimName": self._make(pod, str(each["name"]), found)}
        if made == known:
            return 0
        self._lacking.discard(key)
        self._cluster.patch_status(POD, key[1], key[0], {"resourceClaimStatuses": list(made.values())}, uid=objects.uid(pod))
        return 2

    def _make(self, pod: Obj, name: str, template: Obj) -> str:
        claim = claim_for(pod, name, template)
        with contextlib.suppress(AlreadyExists):  # made before, and not written into the pod's status yet
            self._cluster.create(RESOURCE_CLAIM, claim, field_manager=_MANAGER)
        return objects.name(claim)

    def _drop(self, pod: Obj) -> int:
        """The claims that were made for a pod that is over go."""
        dropped = 0
        for each in (pod.get("status") or {}).get("resourceClaimStatuses") or () if _is_over(pod) else ():
            name = str(each.get("resourceClaimName") or "")
            try:
                claim = self._cluster.get(RESOURCE_CLAIM, name, objects.namespace(pod))
            except NotFound:
                continue
            if (objects.owner(claim) or {}).get("uid") == objects.uid(pod) and not objects.is_deleting(claim):
                self._cluster.delete(RESOURCE_CLAIM, name, objects.namespace(pod), uid=objects.uid(claim))
                dropped += 1
        return dropped

    # -- claims ------------------------------------------------------------------------------------------------------------

    def _claim(self, key: tuple[str, str]) -> int:
        """Strike users off that are over; a claim without users gives its devices back, and may go."""
        claim = self._cluster.get(RESOURCE_CLAIM, key[1], key[0])
        status = claim.get("status") or {}
        users = [user for user in status.get("reservedFor") or () if self._is_alive(key[0], user)]
        written = 0
        if users != (status.get("reservedFor") or []) or (not users and status.get("allocation")):
            new: Obj = {"reservedFor": users or None, **({} if users else {"allocation": None})}
            version = claim["metadata"]["resourceVersion"]
            claim = self._cluster.patch_status(RESOURCE_CLAIM, key[1], key[0], new, resource_version=version)
            written += 1
        held = claim["metadata"].get("finalizers") or []
        if objects.CLAIM_PROTECTION in held and not users:
            body = {"metadata": {"finalizers": [each for each in held if each != objects.CLAIM_PROTECTION] or None}}
            self._cluster.patch(RESOURCE_CLAIM, key[1], key[0], body, field_manager=_MANAGER)
            written += 1
        return written

    def _is_alive(self, namespace: str, user: Obj) -> bool:
        if user.get("resource") != "pods":
            return True
        try:
            pod = self._cluster.get(POD, str(user.get("name")), namespace)
        except NotFound:
            return False
        return objects.uid(pod) == user.get("uid") and not _is_over(pod)


def _is_over(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") in _ENDED


def claim_for(pod: Obj, name: str, template: Obj) -> Obj:
    """The claim that a template gives to a pod for its claim `name`; always called the same."""
    wanted = template.get("spec") or {}
    meta = wanted.get("metadata") or {}
    short = hashlib.sha256(f"{objects.uid(pod)}/{name}".encode()).hexdigest()[:5]
    return {
        "apiVersion": RESOURCE_CLAIM.api_version,
        "kind": RESOURCE_CLAIM.kind,
        "metadata": {
            "name": f"{objects.name(pod)[:180]}-{name}-{short}",
            "namespace": objects.namespace(pod),
            "labels": dict(meta.get("labels") or {}),
            "annotations": {**(meta.get("annotations") or {}), POD_CLAIM: name},
            "ownerReferences": [objects.owner_reference(pod)],
        },
        "spec": wanted.get("spec") or {},
    }
