"""`top queues|nodes|gpus`: who uses how much, once or live; GPUs as a map."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import cast

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from basalt.client.rows import GpuCell, GpuRow, NodeRow, QueueRow, Units
from basalt.commands.columns import node_status
from basalt.terminal.options import connected, labelled
from basalt.terminal.running import Verbs, warn
from basalt.terminal.session import Session
from basalt.terminal.show import data
from basalt.terminal.words import amount, is_gpu

FORM = click.option(
    "-o", "--output", "form", type=click.Choice(("table", "json", "yaml")), default="table", help="how to print  [table]"
)
WATCH = click.option("-w", "--watch", "live", is_flag=True, help="go on, live")
MARKS = {
    "free": "·", "allocated": "■", "shared": "◧", "idle": "□", "reserved": "◇", "releasing": "▒", "unhealthy": "✕",
    "cordoned": "-", "not_ready": "!", "unknown": "?",
}  # fmt: skip
IN_USE = ("allocated", "shared", "idle", "releasing")
PALETTE = (
    "green",
    "cyan",
    "magenta",
    "yellow",
    "blue",
    "bright_green",
    "bright_cyan",
    "bright_magenta",
    "bright_yellow",
    "bright_blue",
)
STYLES = {
    "free": "dim", "reserved": "cyan", "releasing": "yellow", "unhealthy": "bold red", "cordoned": "dim", "not_ready": "red",
    "unknown": "dim",
}  # fmt: skip
PAUSE = 2.0
"""Seconds between two looks at what has no live topic."""


@click.group(cls=Verbs)
def top() -> None:
    """Who uses how much of the cluster."""


def _show(draw: Callable[[], RenderableType], changes: Iterator[object] | None) -> None:
    """Draw once, or again after each change."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=500)  # nobody's screen: nothing is cut
    if changes is None:
        console.print(draw())
        return
    if not console.is_terminal:
        for _ in changes:
            console.print(draw())
        return
    with Live(draw(), console=console, auto_refresh=False) as live:
        for _ in changes:
            live.update(draw(), refresh=True)


# --- queues ---


@top.command()
@connected
@WATCH
@FORM
def queues(session: Session, live: bool, form: str) -> None:
    """What queues hold, deserve and wait for."""
    rows = {row["name"]: row for row in session.client.queues.list()}
    if form != "table":
        data(list(rows.values()), form)
        return

    def changes() -> Iterator[None]:
        for message in session.client.listen({"queues": None}, on_trouble=warn):
            for row in cast(list[QueueRow], (message or {}).get("changed") or []):
                rows[row["name"]] = row
            for name in (message or {}).get("gone") or ():
                rows.pop(name, None)
            yield None

    _show(lambda: _queue_table(rows), changes() if live else None)


def _queue_table(rows: dict[str, QueueRow]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("Queue", "State", "Share", "", "GPUs", "CPUs", "Memory", "Running", "Inqueue", "Pending"):
        table.add_column(title, no_wrap=True, justify="left" if title in ("Queue", "State", "") else "right")
    for depth, row in _tree(rows):
        table.add_row(
            "  " * depth + row["name"],
            row["state"],
            f"{row['share']:.0%}",
            _bar(row["share"]),
            *(_of(row, resource) for resource in (_gpus_of(row), "cpu", "memory")),
            *(str(row[key]) for key in ("groups_running", "groups_inqueue", "groups_pending")),
        )
    return table


def _tree(rows: dict[str, QueueRow]) -> Iterator[tuple[int, QueueRow]]:
    """Queues below their parents; those without one first."""

    def below(parent: str, depth: int) -> Iterator[tuple[int, QueueRow]]:
        for name in sorted(rows):
            if rows[name]["parent"] == parent and name != parent:
                yield depth, rows[name]
                yield from below(name, depth + 1)

    yield from below("", 0)
    for name in sorted(rows):
        if (parent := rows[name]["parent"]) and parent not in rows:
            yield 0, rows[name]


def _gpus_of(row: QueueRow) -> str:
    """The GPU resource that the queue has most to do with."""
    known = [name for amounts in (row["allocated"], row["deserved"], row["capability"]) for name in amounts if is_gpu(name)]
    return known[0] if known else "nvidia.com/gpu"


def _of(row: QueueRow, resource: str) -> str:
    """Allocated, of what is deserved."""
    held, due = row["allocated"].get(resource, 0), row["deserved"].get(resource)
    return amount(held, resource) + (f"/{amount(due, resource)}" if due is not None else "")


def _bar(share: float, width: int = 10) -> Text:
    filled = min(width, round(share * width))
    return Text("█" * filled, style="red" if share > 1 else "green") + Text("░" * (width - filled), style="dim")


# --- nodes ---


@top.command()
@connected
@labelled
@WATCH
@FORM
def nodes(session: Session, labels: str, live: bool, form: str) -> None:
    """What the pods of each machine ask of it."""

    def rows() -> list[NodeRow]:
        return list(session.client.nodes.list(labelSelector=labels))

    if form != "table":
        data(rows(), form)
        return

    def changes() -> Iterator[None]:
        while True:
            time.sleep(PAUSE)
            yield None

    _show(lambda: _node_table(rows()), changes() if live else None)


def _node_table(rows: list[NodeRow]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("Node", "Status", "CPUs", "CPU%", "Memory", "Memory%", "GPUs", "Model", "Pods"):
        table.add_column(title, no_wrap=True, justify="left" if title in ("Node", "Status", "Model") else "right")
    for row in rows:
        status = node_status(row)
        table.add_row(
            row["name"],
            Text(status, style="" if status == "Ready" else "red" if not row["ready"] else "yellow"),
            *_used(row["used"], row["allocatable"], "cpu"),
            *_used(row["used"], row["allocatable"], "memory"),
            f"{row['used'].get('gpus', 0)}/{row['gpu_count']}" if row["gpu_count"] else "-",
            row["gpu_model"] or "-",
            f"{row['used'].get('pods', 0)}/{row['allocatable'].get('pods', 0)}",
        )
    return table


def _used(used: Units, total: Units, resource: str) -> tuple[str, str]:
    held, there = used.get(resource, 0), total.get(resource, 0)
    return f"{amount(held, resource)}/{amount(there, resource)}", f"{held / there:.0%}" if there else "-"


# --- GPUs ---


@top.command()
@connected
@click.option("--by", type=click.Choice(("job", "queue", "owner")), default="job", help="what colours and names stand for  [job]")
@WATCH
@FORM
def gpus(session: Session, by: str, live: bool, form: str) -> None:
    """A map of all GPUs, and who holds them."""
    rows: dict[str, GpuRow] = {}

    def changes() -> Iterator[None]:
        for message in session.client.listen({"topology": None}, on_trouble=warn):
            for row in cast(list[GpuRow], (message or {}).get("changed") or []):
                rows[row["node"]] = _merged(rows.get(row["node"]), row)
            for node in (message or {}).get("gone") or ():
                rows.pop(node, None)
            yield None

    told = changes()
    next(told)
    if form != "table":
        data([rows[node] for node in sorted(rows)], form)
        return
    _show(lambda: _map([rows[node] for node in sorted(rows)], by), told if live else None)


def _merged(known: GpuRow | None, row: GpuRow) -> GpuRow:
    """A machine after a change: of its GPUs, the row may name those alone that changed."""
    cells = {cell["index"]: cell for cell in (*(known["gpus"] if known else ()), *row["gpus"])}
    return cast(GpuRow, {**row, "gpus": [cells[index] for index in sorted(cells)]})


def _map(rows: list[GpuRow], by: str) -> RenderableType:
    if not rows:
        return Text("No resources found")
    cells = [cell for row in rows for cell in row["gpus"]]
    holders = Counter(name for cell in cells if (name := _holder(cell, by)))
    colours = {name: PALETTE[place % len(PALETTE)] for place, (name, _) in enumerate(holders.most_common())}
    states = Counter(cell["state"] for cell in cells)
    counted = ", ".join(f"{states[state]} {_word(state)}" for state in MARKS if states[state])
    head = Text(f"{len(cells)} GPUs on {len(rows)} machines: {counted}")
    return Group(head, Text(), _grid(rows, by, colours), Text(), _legend(states, holders, colours, by))


def _holder(cell: GpuCell, by: str) -> str:
    return str(cell.get(by) or "other") if cell["state"] in IN_USE else ""


def _word(state: str) -> str:
    return state.replace("_", " ")


def _grid(rows: list[GpuRow], by: str, colours: dict[str, str]) -> Table:
    """Machines beside each other, as many as the terminal has room for."""
    name = max(len(row["node"]) for row in rows)
    wide = max(len(row["gpus"]) for row in rows)
    across = max(1, min(len(rows), (Console().width + 3) // (name + wide + 4)))
    table = Table.grid(padding=(0, 3, 0, 0))
    for _ in range(across):
        table.add_column(no_wrap=True)
    for start in range(0, len(rows), across):
        table.add_row(*(_strip(row, name, by, colours) for row in rows[start : start + across]))
    return table


def _strip(row: GpuRow, name: int, by: str, colours: dict[str, str]) -> Text:
    style = "red" if not row["ready"] else "yellow" if row["cordoned"] else ""
    line = Text(row["node"].ljust(name + 1), style=style)
    for cell in row["gpus"]:
        style = STYLES.get(cell["state"]) or colours.get(_holder(cell, by), "")
        line.append(MARKS.get(cell["state"], "?"), style=style)
    return line


def _legend(states: Counter[str], holders: Counter[str], colours: dict[str, str], by: str) -> RenderableType:
    marks = Text("  ".join(f"{MARKS[state]} {_word(state)}" for state in MARKS if states[state]), style="dim")
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, number in holders.most_common(12):
        table.add_row(Text("■", style=colours[name]), name, f"{number} GPUs")
    more = len(holders) - 12
    return Group(marks, table, Text(f"… and {more} more {by}s", style="dim")) if more > 0 else Group(marks, table)
