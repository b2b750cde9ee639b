"""What people do with drains: begin one, cancel it. Pages and REST ask here; the worker carries it out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from cluster import queries, runtime
from cluster.access import policy
from cluster.documents.refusal import NUL
from cluster.errors import BadRequest, Conflict, FieldError, Forbidden, NotFound
from cluster.models import Node
from cluster.said import said
from portal.maintenance import rights, worker
from portal.maintenance.going import Going, look
from portal.maintenance.models import ACTIVE, Drain, DrainedNode, DrainState, Mode
from portal.unblock.copy import current

MOST = 500
"""Nodes of one drain."""
LONGEST_REASON = 500
LONGEST_WAIT = timedelta(days=366)
"""How far ahead a deadline may be."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How nodes are to be drained; see `Drain`."""

    reason: str = ""
    mode: str = Mode.EVICT
    in_turn: bool = False
    bare: bool = False
    local_data: bool = False
    deadline: datetime | None = None

    def faults(self) -> list[FieldError]:
        """What is wrong with it, all at once."""
        found = []
        if not self.reason.strip():
            found.append(FieldError("/reason", said("say why: it stands in the events of the node and of its jobs"), "required"))
        elif len(self.reason) > LONGEST_REASON:
            found.append(FieldError("/reason", said("at most %(most)s characters", most=LONGEST_REASON), "max_length"))
        elif "\0" in self.reason:
            found.append(FieldError("/reason", NUL, "invalid"))
        if self.mode not in Mode.values:
            found.append(FieldError("/mode", said("must be one of %(known)s", known=", ".join(Mode.values)), "choice"))
        if self.mode == Mode.WAIT_THEN_EVICT and self.deadline is None:
            found.append(FieldError("/deadline", said("a deadline is needed, after which what is left is evicted"), "required"))
        if self.deadline is not None and self.deadline <= runtime.now():
            found.append(FieldError("/deadline", said("must be in the future"), "invalid"))
        elif self.deadline is not None and self.deadline - runtime.now() > LONGEST_WAIT:
            found.append(FieldError("/deadline", said("must be within a year"), "invalid"))
        return found

    def missing(self, going: Going) -> list[FieldError]:
        """What has to be asked for explicitly before these pods are evicted."""
        if self.mode == Mode.WAIT:
            return []
        bare = sum(each.is_bare for each in going.evicted)
        local = sum(each.has_local_data for each in going.evicted)
        found = []
        if bare and not self.bare:
            text = said("%(count)s pods are made again by nobody: ask for it with bare", count=bare)
            found.append(FieldError("/bare", text, "required"))
        if local and not self.local_data:
            text = said("%(count)s pods lose what they keep on the node (emptyDir): ask for it with local_data", count=local)
            found.append(FieldError("/local_data", text, "required"))
        return found


def chosen(user: Any, names: Collection[str]) -> list[Node]:
    """The nodes of these names, in their order, if the user may change every one of them.

    Raises BadRequest for none and for too many, NotFound, PermissionDenied.
    """
    wanted = list(dict.fromkeys(names))
    if not policy().may(user, "nodes.view"):
        raise PermissionDenied
    if not wanted:
        raise BadRequest(said("no node was chosen"), [FieldError("/nodes", said("names no node"), "required")])
    if len(wanted) > MOST:
        raise BadRequest(said("at most %(most)s nodes in one drain", most=MOST))
    rows = {node.name: node for node in queries.nodes(user).filter(name__in=[name for name in wanted if "\x00" not in name])}
    for name in wanted:
        if name in rows and not policy().may(user, "nodes.change", rows[name]):
            raise PermissionDenied
    lost = [name for name in wanted if name not in rows]
    if lost:
        if not policy().may(user, "nodes.change"):
            raise PermissionDenied
        raise NotFound(said("there is no node %(name)s", name=lost[0]))
    return [rows[name] for name in wanted]


def begin(user: Any, names: Collection[str], wish: Wish) -> Drain:
    """Begin to drain nodes.

    Raises what `chosen` raises, Forbidden when the portal itself may not, BadRequest for a wish with faults, Conflict for
    pods that have to be asked for and for a node that is drained already, Unavailable.
    """
    nodes = chosen(user, names)
    if lacking := rights.missing():
        raise Forbidden(said("this portal may not drain nodes: it lacks the right to %(rights)s", rights=", ".join(lacking)))
    if faults := wish.faults():
        raise BadRequest(said("the drain cannot be begun like this"), faults)
    with current().pinned() as view:
        going = view.alone(lambda: look(view, [node.name for node in nodes]))
    if faults := wish.missing(going):
        raise Conflict(said("some pods are evicted only if you ask for it"), faults)
    drain = _kept(user, nodes, wish)
    worker.bell.set()
    return drain


def _kept(user: Any, nodes: Sequence[Node], wish: Wish) -> Drain:
    try:
        with transaction.atomic():
            drain = Drain.objects.create(
                user=user.get_username(), reason=wish.reason.strip(), mode=wish.mode, in_turn=wish.in_turn, bare=wish.bare,
                local_data=wish.local_data, deadline=wish.deadline, created_at=runtime.now(),
            )  # fmt: skip
            DrainedNode.objects.bulk_create(
                DrainedNode(drain=drain, place=place, node=node.name, uid=node.uid) for place, node in enumerate(nodes)
            )
    except IntegrityError:
        other = under_way([node.name for node in nodes]).select_related("drain").first()
        if other is None:
            raise
        text = said("node %(node)s is drained already, by %(user)s", node=other.node, user=other.drain.user)
        raise Conflict(text, [FieldError("/nodes", text, "taken")]) from None
    return drain


def under_way(names: Collection[str]) -> QuerySet[DrainedNode]:
    """Nodes of these names that are being drained, or wait for it."""
    return DrainedNode.objects.filter(node__in=names, state__in=ACTIVE)


def may_change(user: Any, drain: Drain) -> bool:
    """Whether somebody may cancel a drain: who may change each of its nodes that are there, and any node if none is."""
    rows = list(queries.nodes(user).filter(name__in=drain.nodes.values("node")))
    if not rows:
        return policy().may(user, "nodes.change")
    gone = Node.objects.filter(name__in=drain.nodes.values("node"), deleted_at=None).count() - len(rows)
    return gone == 0 and all(policy().may(user, "nodes.change", row) for row in rows)


def cancel(user: Any, drain: Drain, *, uncordon: bool) -> None:
    """End a drain; what was evicted stays evicted. Asked twice it says the same. Raises PermissionDenied, Conflict."""
    if not may_change(user, drain):
        raise PermissionDenied
    rows = Drain.objects.filter(pk=drain.pk)
    begun = rows.filter(state=DrainState.RUNNING).update(
        state=DrainState.CANCELLING, uncordons=uncordon, ended_by=user.get_username()
    )
    worker.bell.set()
    drain.refresh_from_db()
    if not begun and drain.state not in (DrainState.CANCELLING, DrainState.CANCELLED):
        raise Conflict(said("the drain has ended: nothing is left to cancel"))


def seen(user: Any) -> QuerySet[Drain]:
    """The drains of which somebody may see every node; who may see all nodes sees those whose nodes are gone, too."""
    found = Drain.objects.prefetch_related("nodes")
    if policy().rights(user) == "all":
        return found
    if not policy().may(user, "nodes.view"):
        return found.none()
    hidden = DrainedNode.objects.exclude(node__in=queries.nodes(user).values("name"))
    return found.exclude(pk__in=hidden.values("drain"))
