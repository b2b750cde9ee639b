"""Who is let in, and what he may do: handed in from above, where users and rights are known."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from cluster.kinds import Kind
from cluster.port import Cluster, Obj

Verb = Literal["create", "update", "delete"]


class Gate(Protocol):
    """Asked before everything; it may look into databases, so it is called in a thread."""

    def user(self, token: str) -> Any | None:
        """The user of a bearer token, None for one that is unknown or over."""
        ...

    def may_read(self, user: Any, kind: Kind, part: str = "") -> bool:
        """Whether the user may get, list and watch objects of a kind; of one of them this part, such as its `log`."""
        ...

    def sees_all(self, user: Any) -> bool:
        """Whether the user is shown objects whole; others get them without what is secret (`cluster.disclosure`)."""
        ...

    def check_write(
        self, user: Any, cluster: Cluster, verb: Verb, kind: Kind, name: str, namespace: str, obj: Obj | None
    ) -> None:
        """Let a write in, or raise Forbidden. `obj` is the object to be created, into which the gate may write whose it is."""
        ...
