"""Making a job's objects: owned by the job, so that they go with it; what belongs to somebody else is left alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from cluster import objects
from cluster.errors import AlreadyExists, ApiError, Conflict, NotFound, Unavailable
from cluster.kinds import JOB, Kind
from cluster.port import Cluster, Obj
from cluster.said import said
from jobs.keys import FIELD_MANAGER


class Taken(ApiError):
    """The name of an object that a job needs is taken by somebody else's."""

    status, reason = 409, "Taken"

    def __init__(self, kind: Kind, name: str) -> None:
        super().__init__(said("%(kind)s %(name)s belongs to somebody else and is left alone", kind=kind.kind, name=name))
        self.kind, self.name = kind, name


class Maker:
    """Makes, finds and removes the objects of one job. `tell` is called with what people should know."""

    def __init__(self, cluster: Cluster, job: Obj, tell: Callable[[str], None]) -> None:
        self._cluster, self._job, self.tell = cluster, job, tell

    def find(self, kind: Kind, name: str) -> Obj | None:
        """The job's own object of that name, None when there is none.

        Raises Taken, and Unavailable while one that is on its way out still has the name.
        """
        try:
            found = self._cluster.get(kind, name, objects.namespace(self._job))
        except NotFound:
            return None
        owners = found["metadata"].get("ownerReferences") or ()
        if any(owner.get("uid") == objects.uid(self._job) for owner in owners) and not objects.is_deleting(found):
            return found
        if objects.is_deleting(found) or any(_is_predecessor(owner, self._job) for owner in owners):
            raise Unavailable(said("%(kind)s %(name)s of before is still being removed", kind=kind.kind, name=name))
        raise Taken(kind, name)

    def keep(self, kind: Kind, name: str, body: Obj) -> None:
        """Make the object, or bring the fields of `body` up to date in the job's own. Raises what `find` raises."""
        own = self.find(kind, name)
        if own is None:
            self.create(kind, name, body)
        elif any(own.get(field) != value for field, value in body.items()):
            self._cluster.replace(kind, {**own, **body}, field_manager=FIELD_MANAGER)

    def offer(self, kind: Kind, name: str, body: Obj) -> None:
        """Make the object when there is none of the name; somebody else's will do, and is told of."""
        try:
            if self.find(kind, name) is None:
                self.create(kind, name, body)
        except Taken as taken:
            self.tell(said("%(taken)s; the job goes on with it", taken=taken))

    def create(self, kind: Kind, name: str, body: Obj) -> None:
        """Make an object of the job's. Raises Conflict when somebody was quicker."""
        obj = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {
                "name": name,
                "namespace": objects.namespace(self._job),
                "ownerReferences": [objects.owner_reference(self._job)],
            },
            **body,
        }
        try:
            self._cluster.create(kind, obj, field_manager=FIELD_MANAGER)
        except AlreadyExists as error:
            raise Conflict(error.message) from None

    def remove(self, kind: Kind, name: str) -> None:
        """Delete the job's own object of that name; one that is gone, going or somebody else's is left as it is."""
        with contextlib.suppress(Taken, Unavailable, NotFound):
            own = self.find(kind, name)
            if own is not None:
                self._cluster.delete(kind, name, objects.namespace(self._job), uid=objects.uid(own))


def _is_predecessor(owner: Obj, job: Obj) -> bool:
    """Whether an owner is an earlier job of the same name; what it owned is being collected."""
    return (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) == (JOB.api_version, JOB.kind, objects.name(job))
