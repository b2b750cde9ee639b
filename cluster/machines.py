"""What administrators do to nodes: cordon them, and take simulated ones down. The next page shows it at once.

Each deed is told by an event about the node, which names who did it: that is the node's history.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import structlog

from cluster import objects, runtime
from cluster.errors import ApiError, Conflict, NotFound
from cluster.events import event_about
from cluster.kinds import EVENT, NODE
from cluster.leaving import DRAIN
from cluster.port import Cluster, Obj
from cluster.projection import Batch, project_events, project_nodes
from cluster.said import said

log = structlog.get_logger(__name__)

SOURCE = "basalt-portal"
"""Who tells events about deeds."""
BY = "by "
"""Before the name of who did it, in an event's message."""


class Simulation(Protocol):
    """Machines that are made up, so that losing one can be asked for. Both raise NotFound."""

    def lose_node(self, node: str) -> None:
        """Cut a node off."""
        ...

    def recover_node(self, node: str) -> None:
        """Bring it back."""
        ...


_simulation: Simulation | None = None


def simulate(simulation: Simulation | None) -> None:
    """Register who simulates this process's machines; None where they are real, as they are until this is called."""
    global _simulation
    _simulation = simulation


def simulated() -> bool:
    """Whether machines can be lost on request."""
    return _simulation is not None


def act(name: str, action: str, user: str = "") -> Obj:
    """Do one of ACTIONS to a node, in the name of a user; the node as it is afterwards.

    Raises NotFound (also for an action that does not exist), Conflict where the machines are real and the action is for
    simulated ones, Unavailable.
    """
    if action not in ACTIONS:
        raise NotFound(
            said("there is no action %(action)r on nodes; there are %(actions)s", action=action, actions=", ".join(ACTIONS))
        )
    cluster = runtime.current()
    cluster.get(NODE, name)  # one that does not exist is said first
    ACTIONS[action](cluster, name)
    node = cluster.get(NODE, name)
    project_nodes(Batch(upserts=[node]))
    tell(cluster, node, REASONS_OF[action], user)
    return node


def tell(cluster: Cluster, node: Obj, reason: str, user: str, why: str = "") -> None:
    """Write down what was done, by whom and why. It is done whether or not that can be written."""
    stamp = objects.stamp(runtime.now().timestamp())
    event = event_about(node, "Normal", reason, _who(user, why), stamp=stamp, component=SOURCE)
    try:
        project_events(Batch(upserts=[cluster.create(EVENT, event, field_manager="basalt")]))
    except ApiError as error:
        log.warning("what was done to a node could not be written down", node=objects.name(node), error=error.message)


def _who(user: str, why: str) -> str:
    if not user:
        return why
    return said("by %(user)s: %(why)s", user=user, why=why) if why else said("by %(user)s", user=user)


TAKES_PODS: Obj = {"metadata": {"annotations": {DRAIN: None}}, "spec": {"unschedulable": None}}
"""What makes a node take pods again. It ends a drain of it, too."""


def _cordon(cluster: Cluster, name: str) -> None:
    cluster.patch(NODE, name, "", {"spec": {"unschedulable": True}}, field_manager="basalt")


def _uncordon(cluster: Cluster, name: str) -> None:
    cluster.patch(NODE, name, "", TAKES_PODS, field_manager="basalt")


def _lose(cluster: Cluster, name: str) -> None:
    _made_up().lose_node(name)


def _recover(cluster: Cluster, name: str) -> None:
    _made_up().recover_node(name)


def _made_up() -> Simulation:
    if _simulation is None:
        raise Conflict(said("the machines of this cluster are real: only simulated ones can be lost and recovered on request"))
    return _simulation


ACTIONS: dict[str, Callable[[Cluster, str], None]] = {
    "cordon": _cordon,
    "uncordon": _uncordon,
    "lose": _lose,
    "recover": _recover,
}
"""What can be done, by its name in an address."""
REASONS_OF = {"cordon": "Cordoned", "uncordon": "Uncordoned", "lose": "TakenDown", "recover": "BroughtBack"}
DRAINING, DRAINED, DRAIN_ENDED = "Draining", "Drained", "DrainEnded"
REASONS = frozenset({*REASONS_OF.values(), DRAINING, DRAINED, DRAIN_ENDED})
"""Reasons of the events that tell of each."""
