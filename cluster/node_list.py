"""The list of nodes: what a reader asks of it, its facets, its order, its columns, and the list as a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext as _

from cluster import queries
from cluster.capacity import Unusable
from cluster.display import short_model
from cluster.exports import Rows
from cluster.facets import Choice, Panel
from cluster.models import Node
from cluster.workloads import Usage

NO_GPU = "-"
"""What a filter calls the model of nodes without GPUs."""

STATES: dict[str, Q] = {
    "ready": Q(ready=True, cordoned=False),
    "cordoned": Q(ready=True, cordoned=True, draining=False),
    "draining": Q(ready=True, draining=True),
    "lost": Q(ready=False),
}
SORTS: dict[str, tuple[str, ...]] = {
    "name": ("name",),
    "state": ("ready", "-draining", "-cordoned", "name"),
    "model": ("gpu_model", "name"),
    "gpus": ("gpu_count", "name"),
    "cpu": ("allocatable__cpu", "name"),
    "memory": ("allocatable__memory", "name"),
    "rack": ("spine", "rack", "name"),
}
BY_USE: dict[str, Callable[[Usage, int], int]] = {
    "used": lambda use, unusable: use.gpus,
    "pods": lambda use, unusable: use.pods,
    "unusable": lambda use, unusable: unusable,
}
"""Sort keys that need what runs on the nodes, so the whole list is ordered here and not by the database."""


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """What a reader asks; empty means all. `sort` is a key of SORTS or BY_USE, with a leading dash downwards.

    `names`: only these; `of_no_use`: only nodes with free GPUs that nobody can use.
    """

    text: str = ""
    state: str = ""
    model: str = ""
    rack: str = ""
    spine: str = ""
    sort: str = "name"
    of_no_use: bool = False
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, query: Mapping[str, str]) -> NodeFilter:
        """What an address asks. Nothing in it is an error: what is not known is not there."""

        def text(name: str) -> str:
            return query.get(name, "").replace("\x00", "").strip()[:253]

        return cls(
            text("q"), text("state"), text("model"), text("rack"), text("spine"), text("sort") or "name", bool(text("unusable"))
        )

    @property
    def needs_use(self) -> bool:
        """Whether its order is by what runs on the nodes."""
        return self.sort.lstrip("-") in BY_USE

    @property
    def chosen(self) -> list[tuple[str, str]]:
        """What narrows the list, as (name in the address, value)."""
        named = {"q": self.text, "state": self.state, "model": self.model, "rack": self.rack, "spine": self.spine}
        return [(name, value) for name, value in named.items() if value] + ([("unusable", "1")] if self.of_no_use else [])


def find(user: Any, wanted: NodeFilter) -> QuerySet[Node]:
    """The filtered nodes, ordered where the database can."""
    rows = queries.nodes(user)
    if wanted.text:
        rows = rows.filter(name__icontains=wanted.text)
    if wanted.names is not None:
        rows = rows.filter(name__in=wanted.names)
    if wanted.state in STATES:
        rows = rows.filter(STATES[wanted.state])
    if wanted.model:
        rows = rows.filter(gpu_model="" if wanted.model == NO_GPU else wanted.model)
    if wanted.rack:
        rows = rows.filter(rack=wanted.rack)
    if wanted.spine:
        rows = rows.filter(spine=wanted.spine)
    return rows.order_by(*_order(wanted.sort))


def _order(sort: str) -> tuple[str, ...]:
    """Columns of a sort key; downwards all of them are turned but the name that breaks ties."""
    keys = SORTS.get(sort.lstrip("-"), ("name",))
    if not sort.startswith("-"):
        return keys
    return tuple(
        key if key == "name" and len(keys) > 1 else key.removeprefix("-") if key.startswith("-") else f"-{key}" for key in keys
    )


def by_use(rows: QuerySet[Node], sort: str, usage: Mapping[str, Usage], unusable: Mapping[str, int]) -> list[str]:
    """Node uids ordered by what runs on them."""
    nothing, value = Usage(), BY_USE[sort.lstrip("-")]
    names = rows.order_by("name").values_list("uid", "name")
    ordered = sorted(
        names, key=lambda row: value(usage.get(row[1], nothing), unusable.get(row[1], 0)), reverse=sort.startswith("-")
    )
    return [uid for uid, _name in ordered]


# -- facets ------------------------------------------------------------------------------------------------------------


SHOWN = 8
_MARKS = {"ready": "completed", "cordoned": "aborted", "draining": "terminating", "lost": "unknown"}


def by_state(user: Any) -> Counter[str]:
    """All nodes by state."""
    found: Counter[str] = Counter()
    columns = queries.nodes(user).order_by().values_list("ready", "cordoned", "draining")
    for ready, cordoned, draining, number in columns.annotate(Count("uid")):
        found[_state(ready, cordoned, draining)] += number
    return found


def _state(ready: bool, cordoned: bool, draining: bool) -> str:
    return "lost" if not ready else "draining" if draining else "cordoned" if cordoned else "ready"


def panels(user: Any, wanted: NodeFilter) -> list[Panel]:
    """The facets, each counted given the choices in the others; one query whatever is chosen."""
    plain = replace(wanted, state="", model="", rack="", spine="")
    columns = ("ready", "cordoned", "draining", "gpu_model", "rack", "spine")
    groups = find(user, plain).order_by().values_list(*columns).annotate(Count("uid"))
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("state", "model", "spine", "rack")}
    for ready, cordoned, draining, model, rack, spine, number in groups:
        found = {"state": _state(ready, cordoned, draining), "model": model or NO_GPU, "rack": rack, "spine": spine}
        missed = [name for name, value in found.items() if getattr(wanted, name) not in ("", value)]
        for name in found if not missed else missed if len(missed) == 1 else ():
            counts[name][found[name]] += number
    titles = {"state": _("State"), "model": _("GPU model"), "spine": _("Spine"), "rack": _("Rack")}
    made = [_panel(name, titles[name], counts[name], getattr(wanted, name)) for name in counts]
    return [panel for panel in made if panel.choices]


def _panel(name: str, title: str, counts: Counter[str], chosen: str) -> Panel:
    values = [value for value in {*counts, chosen} if value]
    if name == "state":
        values = [state for state in STATES if state in values]
    elif name == "model":
        values.sort(key=lambda value: (value != chosen, -counts[value], value))
    else:
        values.sort(key=lambda value: (value != chosen, value))
    marks = _MARKS if name == "state" else {}
    choices = [Choice(value, _label(name, value), counts[value], value == chosen, marks.get(value, "")) for value in values]
    return Panel(name, title, choices[:SHOWN], choices[SHOWN:])


def _label(name: str, value: str) -> str:
    if name == "state":
        return {"ready": _("Ready"), "cordoned": _("Cordoned"), "draining": _("Draining"), "lost": _("Not ready")}[value]
    if name == "model":
        return _("no GPU") if value == NO_GPU else short_model(value)
    return value


def heads(sort: str) -> list[dict[str, str]]:
    """Heads of the table: what each is called, where its link leads, and how it is sorted now."""
    named = [
        ("name", _("Node"), ""),
        ("state", _("State"), ""),
        ("model", _("GPU model"), ""),
        ("used", _("GPUs used"), "num"),
        ("unusable", _("Free, of no use"), ""),
        ("cpu", _("CPU"), "num"),
        ("memory", _("Memory"), "num"),
        ("pods", _("Pods"), "num"),
        ("rack", _("Rack"), ""),
    ]
    now = {sort: "ascending"} if not sort.startswith("-") else {sort[1:]: "descending"}
    downwards = {*BY_USE, "gpus", "cpu", "memory"}  # of amounts the most are looked for
    return [
        {"key": _next(key, now.get(key, ""), key in downwards), "label": label, "css": css, "sorted": now.get(key, "")}
        for key, label, css in named
    ]


def _next(key: str, now: str, downwards: bool) -> str:
    if not now:
        return f"-{key}" if downwards else key
    return f"-{key}" if now == "ascending" else key


# -- as a file ---------------------------------------------------------------------------------------------------------

COLUMNS = (
    "name", "state", "spine", "rack", "gpu_model", "gpus", "gpus_used", "gpus_unusable", "causes", "cpu_milli", "cpu_milli_used",
    "memory_bytes", "memory_bytes_used", "pods",
)  # fmt: skip


def file(rows: Sequence[Node], usage: Mapping[str, Usage], unusable: Mapping[str, Sequence[Unusable]]) -> Rows:
    """The list with its columns, in its order."""
    return COLUMNS, _values(rows, usage, unusable)


async def _values(
    rows: Sequence[Node], usage: Mapping[str, Usage], unusable: Mapping[str, Sequence[Unusable]]
) -> AsyncIterator[Sequence[Any]]:
    nothing = Usage()
    for node in rows:
        use, parts = usage.get(node.name, nothing), unusable.get(node.name, ())
        yield [
            node.name,
            _state(node.ready, node.cordoned, node.draining),
            node.spine,
            node.rack,
            node.gpu_model,
            node.gpu_count,
            use.gpus,
            sum(part.gpus for part in parts),
            " ".join(f"{part.cause}:{part.gpus}" for part in parts),
            node.allocatable.get("cpu", 0),
            use.requests.get("cpu", 0),
            node.allocatable.get("memory", 0),
            use.requests.get("memory", 0),
            use.pods,
        ]
