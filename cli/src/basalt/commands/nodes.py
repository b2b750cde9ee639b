"""`node …`: machines, whether they take pods, and taking them out for maintenance."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click

from basalt.client.errors import ServerFailed, Unreachable
from basalt.commands import columns
from basalt.terminal.ages import seconds
from basalt.terminal.exits import EndedOtherwise, Missing, TimedOut
from basalt.terminal.options import connected, each, labelled, named, printed
from basalt.terminal.running import Verbs, warn
from basalt.terminal.session import Session
from basalt.terminal.show import Output, data
from basalt.terminal.words import in_own_language

FLAGS = ("-N", "--name")
PAUSE = 1.0
"""Seconds between two looks at a drain."""


@click.group(cls=Verbs)
def node() -> None:
    """Machines: see them, cordon them, drain them for maintenance."""


@node.command("list")
@connected
@labelled
@printed
def list_nodes(session: Session, labels: str, output: Output) -> None:
    """List all nodes."""
    rows = list(session.client.nodes.list(labelSelector=labels, include=output.include))
    output.rows(rows, columns.nodes(session.now if output.form == "wide" else None), "node")


@node.command()
@connected
@named("node", flags=FLAGS)
def cordon(session: Session, names: list[str]) -> None:
    """Let nodes take no more pods; those on them go on."""
    _each(session, names, "cordon", "cordoned")


@node.command()
@connected
@named("node", flags=FLAGS)
def uncordon(session: Session, names: list[str]) -> None:
    """Let nodes take pods again. It ends a drain of them."""
    _each(session, names, "uncordon", "uncordoned")


def _each(session: Session, names: list[str], action: str, done: str) -> None:
    def work(name: str) -> None:
        session.client.nodes.act(action, name)
        click.echo(f"node/{name} {done}")

    each(names, "a node must be named", work)


@node.command()
@connected
@named("node", flags=FLAGS)
@labelled
@click.option("-m", "--reason", default="", help="why; it stands in the events of the nodes and of their jobs")
@click.option("--dry-run", is_flag=True, help="say what would happen, and do nothing")
@click.option("--wait", "waits", is_flag=True, help="evict nobody: wait until the pods have ended")
@click.option("--deadline", default="", metavar="2h", help="give up after so long, and leave the nodes cordoned")
@click.option("--then-evict", is_flag=True, help="with --wait and --deadline: evict what is left then")
@click.option("--force", is_flag=True, help="evict pods too that nobody makes again")
@click.option("--delete-emptydir-data", "local_data", is_flag=True, help="evict pods too that keep data on the node")
@click.option("--one-by-one", "in_turn", is_flag=True, help="one node after another")
@click.option("--no-follow", is_flag=True, help="begin it, and do not stay until it has ended")
@click.option("-o", "--output", "form", type=click.Choice(("text", "json", "yaml")), default="text", help="how to print  [text]")
def drain(
    session: Session, names: list[str], labels: str, reason: str, dry_run: bool, form: str, no_follow: bool, **how: Any
) -> None:
    """Cordon nodes and evict their pods, as far as disruption budgets allow."""
    chosen = [*names, *(row["name"] for row in session.client.nodes.list(labelSelector=labels))] if labels else list(names)
    if not chosen:
        raise Missing("a node must be named, or chosen by labels")
    if dry_run:
        told = session.client.drains.preview(chosen)
        if form != "text":
            data(told, form)
            return
        for line in preview_lines(told):
            click.echo(line)
        return
    if not reason:
        raise Missing("say why, with --reason")
    made = session.client.drains.create(_order(chosen, reason, **how))
    if no_follow:
        click.echo(f"drain/{made['id']} begun") if form == "text" else data(made, form)
        return
    _follow(session, made, form)


def _order(
    nodes: Sequence[str], reason: str, *, waits: bool, deadline: str, then_evict: bool, force: bool, local_data: bool,
    in_turn: bool,
) -> dict[str, Any]:  # fmt: skip
    if then_evict and not (waits and deadline):
        raise Missing("--then-evict goes with --wait and --deadline")
    body: dict[str, Any] = {"nodes": list(dict.fromkeys(nodes)), "reason": reason, "bare": force, "local_data": local_data}
    body |= {"in_turn": in_turn, "mode": "wait-then-evict" if then_evict else "wait" if waits else "evict"}
    return body | ({"deadline_in": f"{seconds(deadline):g}s"} if deadline else {})


def preview_lines(told: dict[str, Any]) -> list[str]:
    """What a drain would do, in lines."""
    pods, jobs = told["pods"], told["jobs"]
    below = told["gangs_below_minimum"]
    lines = [f"Pods that would go: {pods['go']}; jobs that lose some: {len(jobs)}; gangs below their minimum: {below}"]
    for job in jobs:
        name, owner = job["job"] or "a job that you may not see", job["owner"]
        whose = f" ({owner})" if owner else ""
        lines.append(f"  {name}{whose}: {job['evicted']} evicted, {job['leaving']} leave")
        gang = job["gang"]
        if gang is not None:
            said = [gang["says"], gang["then"], *gang["maybe"]]
            lines += [f"    {in_own_language(text)}" for text in said]
        places = ", ".join(f"{place['pods']} on {place['node']}" for place in job["places"])
        again = f"placed again at once: {job['placed_again']} of {job['leaving']}" + (f" ({places})" if places else "")
        lines.append(f"    {again if gang is None or gang['made_again'] else 'not made again'}")
        if why := in_own_language(job["waits"]):
            lines.append(f"    {why}")
    for budget in told["budgets"]:
        name = budget["budget"] or "A disruption budget"
        lines.append(f"{name} lets {budget['allowed_now']} of {budget['pods']} pods go now.")
    if pods["bare"]:
        lines.append(f"{pods['bare']} pods are made again by nobody: --force evicts them.")
    if pods["local_data"]:
        lines.append(f"{pods['local_data']} pods keep data on the node: --delete-emptydir-data evicts them.")
    if told["missing_rights"]:
        lines.append(f"The portal may not drain nodes: it lacks the right to {', '.join(told['missing_rights'])}.")
    return [*lines, "Nothing was done."]


def _follow(session: Session, made: dict[str, Any], form: str) -> None:
    """Tell what changes until it has ended. The drain goes on by itself, whatever becomes of this program."""
    known: dict[str, str] = {}
    found = made
    while True:
        if form == "text":
            for row in found["by_node"]:
                if known.get(row["node"]) != (said := _says(row)):
                    known[row["node"]] = said
                    click.echo(f"node/{row['node']} {said}")
        if found["state"] not in ("running", "cancelling"):
            break
        time.sleep(PAUSE)
        try:
            found = session.client.drains.get(made["id"])
        except (Unreachable, ServerFailed) as error:
            warn(str(error))
    if form != "text":
        data(found, form)
    if found["state"] == "overdue":
        raise TimedOut(f"The deadline passed: {found['drained']} of {len(found['nodes'])} nodes are drained.")
    if found["state"] == "cancelled":
        raise EndedOtherwise(f"The drain was cancelled by {found['ended_by']}.")


def _says(row: dict[str, Any]) -> str:
    if row["state"] != "draining" or row["left"] is None:
        return str(row["state"])
    held = f", {row['held_count']} held: {row['held'][0]['why'] or row['held'][0]['code']}" if row["held"] else ""
    trouble = f" ({row['trouble']})" if row["trouble"] else ""
    return f"draining, {row['left']} {'pod' if row['left'] == 1 else 'pods'} left{held}{trouble}"
