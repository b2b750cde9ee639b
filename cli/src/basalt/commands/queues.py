"""`queue …` and vqueues."""

from __future__ import annotations

from typing import Any

import click

from basalt.client.errors import Refused
from basalt.commands import columns
from basalt.commands.manifest import resources
from basalt.terminal.exits import Missing
from basalt.terminal.options import connected, labelled, named, one, printed
from basalt.terminal.options import queues as queue_names
from basalt.terminal.running import Verb, Verbs, warn
from basalt.terminal.session import Session
from basalt.terminal.show import Output

FLAGS = ("-n", "--name")


@click.group(cls=Verbs)
def queue() -> None:
    """Queues: who gets how much of the cluster."""


@queue.command()
@connected
@click.argument("argument", default="", metavar="[NAME]")
@click.option(*FLAGS, "name", default="", help="the name of the queue  [test]")
@click.option("-w", "--weight", type=int, default=1, help="its weight beside its siblings  [1]")
@click.option("-S", "--state", default="Open", help="ignored, as by Kubernetes: a new queue is open")
@click.option("--parent", default="", shell_complete=queue_names, help="the queue above it  [root]")
@click.option("--capability", default="", metavar="cpu=8,memory=16Gi", help="the most that it may use")
def create(session: Session, argument: str, name: str, weight: int, state: str, parent: str, capability: str) -> None:
    """Create a queue."""
    spec: dict[str, Any] = {"weight": weight}
    if parent:
        spec["parent"] = parent
    if capability:
        spec["capability"] = resources(capability)
    chosen = name or argument or "test"
    session.client.queues.create(
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": chosen}, "spec": spec}
    )
    if state != "Open":
        warn(f"Queue {chosen} is open: a state cannot be created. Close it with: queue operate -n {chosen} -a close")


@queue.command()
@connected
@named("queue", flags=FLAGS)
def delete(session: Session, names: list[str]) -> None:
    """Delete a queue that has no children and no work."""
    session.client.queues.delete(one(names, "queue name must be specified"))


@queue.command()
@connected
@named("queue", flags=FLAGS)
@click.option("-w", "--weight", type=int, default=0, help="the new weight (of update)")
@click.option("-a", "--action", default="", help="open, close or update")
def operate(session: Session, names: list[str], weight: int, action: str) -> None:
    """Open or close a queue, or change its weight."""
    name = one(names, "queue name must be specified")
    match action:
        case "open" | "close":
            session.client.queues.act(action, name)
        case "update" if weight == 0:
            raise Refused(f"when update queue {name}, weight must be specified, the value must be greater than 0")
        case "update":
            session.client.queues.change(name, {"weight": weight})
        case "":
            raise Missing("action can not be null")
        case _:
            raise Refused(f"action {action} invalid, valid actions are open, close and update")


@queue.command()
@connected
@named("queue", flags=FLAGS)
@click.option("-w", "--weight", type=int, default=None, help="the new weight")
@click.option("--parent", default=None, shell_complete=queue_names, help="the queue above it")
@click.option("--capability", default=None, metavar="cpu=8,memory=16Gi", help="the most that it may use; empty: no limit")
@click.option("--deserved", default=None, metavar="cpu=4", help="what it should get; empty: nothing said")
def update(
    session: Session, names: list[str], weight: int | None, parent: str | None, capability: str | None, deserved: str | None
) -> None:
    """Change a queue."""
    name = one(names, "queue name must be specified")
    spec: dict[str, Any] = {}
    if weight is not None:
        spec["weight"] = weight
    if parent is not None:
        spec["parent"] = parent
    current = session.client.queues.get(name).get("manifest") or {}
    for key, text in (("capability", capability), ("deserved", deserved)):
        if text is not None:
            gone = dict.fromkeys((current.get("spec") or {}).get(key) or {})
            spec[key] = {**gone, **resources(text)} if text else None
    if not spec:
        raise Missing("there is nothing to change: give --weight, --parent, --capability or --deserved")
    session.client.queues.change(name, spec)


@queue.command("list")
@connected
@labelled
@printed
def list_queues(session: Session, labels: str, output: Output) -> None:
    """List all queues."""
    rows = list(session.client.queues.list(labelSelector=labels, include=output.include))
    output.rows(rows, columns.queues(), "queue")


@queue.command()
@connected
@named("queue", flags=FLAGS)
@printed
def get(session: Session, names: list[str], output: Output) -> None:
    """Show a queue."""
    name = one(names, "name is mandatory to get the particular queue details")
    output.one(session.client.queues.get(name), columns.queues(), "queue")


@click.command(cls=Verb)
@connected
@named("queue", flags=FLAGS)
@printed
def vqueues(session: Session, names: list[str], output: Output) -> None:
    """Show a queue, or list all."""
    if names:
        output.one(session.client.queues.get(one(names, "")), columns.vqueues(), "queue")
    else:
        output.rows(list(session.client.queues.list(include=output.include)), columns.vqueues(), "queue")
