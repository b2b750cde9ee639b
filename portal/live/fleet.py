"""The topics of the heatmap: the whole fleet as its page has it, then the GPUs that changed; and the node at its side.

A page says by `=digest` which fleet it was drawn from (`=` when it does not know any more). The first answer is the fleet in
its compact shape, or `same` when that is what the page has; so nothing is lost between a page and its socket, nor after a
break that was too long to be caught up with.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import orjson

from cluster import compact, queries
from cluster.access import policy
from cluster.rows import gpu_rows
from cluster.views import node_context
from jobs.pages.rendered import in_all_languages
from portal.live.answers import Answer, Plain, Row, Topic, Uids
from portal.live.told import Told

MARK = "="


def _gpus(user: Any, names: Uids) -> dict[str, Row]:
    return {row["node"]: row for row in gpu_rows(user, names)}


class TopologyTopic(Plain):
    """Who holds which GPU. A delta names of a machine's GPUs those that changed since it was last told of them."""

    def __init__(self) -> None:
        super().__init__("topology", "nodes.view", _gpus)
        self._told: defaultdict[str, Told[Row]] = defaultdict(Told)

    def load(self, user: Any, uids: Uids) -> Answer:
        """Whole machines."""
        answer = super().load(user, uids)
        self._told[policy().rights(user)].saw(answer.rows)
        return answer

    def delta(self, user: Any, uids: Uids) -> Answer:
        """What changed of these machines."""
        told = self._told[policy().rights(user)]
        doubted = told.begin()
        rows = self._load(user, None if uids is None else {*uids, *doubted})
        before = told.tell(rows, doubted, uids or ())
        changed = {name: _changed(before[name], row) for name, row in rows.items()}
        return Answer({name: row for name, row in changed.items() if row}, unchanged=rows.keys())


def _changed(told: Row | None, row: Row) -> Row | None:
    """A machine with those of its GPUs that are not as they were told; None when nothing is new."""
    if told == row:
        return None
    if told is None or len(told["gpus"]) != len(row["gpus"]):
        return row
    return row | {"gpus": [gpu for gpu, was in zip(row["gpus"], told["gpus"], strict=True) if gpu != was]}


class FleetTopic(TopologyTopic):
    """As `topology`, whose notices it hears, with a first answer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "fleet"
        self._came: set[str] = set()

    def load(self, user: Any, uids: Uids) -> Answer:
        """The fleet, for a page that comes; the machines that are named, for one that was away for a moment."""
        if not _is_whole(uids):
            return super().load(user, uids)
        rights = policy().rights(user)
        self._came.add(rights)
        text, digest = compact.encoded(queries.fleet(user))
        self._came.add(rights)  # a delta that begins only now tells machines whole: this page may have seen what no other has
        known = {name.removeprefix(MARK) for name in uids or ()}
        return Answer(extras={"same": True} if known == {digest} else {"fleet": orjson.Fragment(text), "digest": digest})

    def delta(self, user: Any, uids: Uids) -> Answer:
        """The GPUs that changed; the fleet, when anything may have."""
        rights = policy().rights(user)
        if _is_whole(uids):
            text, digest = compact.encoded(queries.fleet(user))
            return Answer(extras={"fleet": orjson.Fragment(text), "digest": digest})
        if rights not in self._came:
            return super().delta(user, uids)
        self._came.discard(rights)
        rows = self._load(user, uids)
        self._told[rights].tell(rows, rows.keys(), uids or ())
        return Answer(rows)

    def touched(self, topic: str, uids: Uids) -> Uids:
        """What `topology` is told."""
        return uids if topic == "topology" else ()

    def gone(self, asked: Uids, rows: dict[str, Row]) -> list[str]:
        """Machines only."""
        return super().gone([name for name in asked or () if not name.startswith(MARK)], rows)


def _is_whole(uids: Uids) -> bool:
    return uids is None or any(name.startswith(MARK) for name in uids)


class NodePanel(Topic):
    """The node at the side of the heatmap, drawn anew when its GPUs change. Its name is the topic's."""

    action = "nodes.view"
    interval = 1.0

    def __init__(self, name: str) -> None:
        self._name = name

    def touched(self, topic: str, uids: Uids) -> Uids:
        """The panel, or nothing."""
        return (self._name,) if topic == "topology" and (uids is None or self._name in uids) else ()

    def load(self, user: Any, uids: Uids) -> Answer:
        """The panel in every language."""
        node = queries.nodes(user).filter(name=self._name).first()
        if node is None:
            return Answer()
        strip = queries.strips(user, [node])[0]
        html = in_all_languages("cluster/node_panel.html", lambda: node_context(node, strip))
        return Answer({self._name: {"uid": self._name, "html": html}})
