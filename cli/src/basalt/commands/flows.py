"""`jobflow …` and `jobtemplate …`, which have the same verbs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from basalt.client import Client
from basalt.client.errors import BasaltError, Refused
from basalt.client.resources import Resource
from basalt.commands import columns
from basalt.terminal import manifests
from basalt.terminal.exits import Missing, Partial
from basalt.terminal.options import connected, each, everywhere, is_volcano, named, namespaced, one, printed
from basalt.terminal.running import Verbs
from basalt.terminal.session import Session
from basalt.terminal.show import Output, as_yaml, data
from basalt.terminal.table import Column


@dataclass(frozen=True, slots=True)
class Kind:
    """What is different between the two."""

    verb: str
    kind: str
    text: str
    resource: Callable[[Client], Resource[Any]]
    columns: Callable[[Session], Sequence[Column[Any]]]


def group(kind: Kind) -> click.Group:
    """A group with create, list, get, describe, delete."""

    @click.group(kind.verb, cls=Verbs, help=kind.text)
    def verbs() -> None:
        pass

    _creating(verbs, kind)
    _listing(verbs, kind)
    _getting(verbs, kind)
    _describing(verbs, kind)
    _deleting(verbs, kind)
    return verbs


def _creating(verbs: click.Group, kind: Kind) -> None:
    @verbs.command(help=f"Create {kind.verb}s from a YAML file of one document or several.")
    @connected
    @click.option("-f", "--file", "source", default="", type=click.Path(), help="the file; - for standard input")
    @namespaced()
    def create(session: Session, source: str, namespace: str | None) -> None:
        if not source:
            raise Missing(f"a file is mandatory to create a {kind.verb}", hint="Name it with -f.")
        where = session.namespace(namespace)
        refused: list[BasaltError] = []
        found = _of_kind(source, kind.kind)
        for document in found:
            try:
                made = kind.resource(session.client).create(document.text, namespace=where)
                click.echo(f"Created {kind.kind}: {made['namespace']}/{made['name']}")
            except BasaltError as error:
                refused.append(error)
                told = "; ".join([error.message, *map(str, error.faults)])
                click.echo(f"Failed to create {kind.kind}: {told}")
        if refused and not is_volcano():
            raise Partial(f"{len(refused)} of {len(found)} were refused.")


def _of_kind(source: str, kind: str) -> list[manifests.Document]:
    found = manifests.documents(manifests.read(source), source)
    for document in found:
        if document.kind and document.kind != kind:
            raise Refused(
                f"{source}, line {document.line}: this is a {document.kind}, not a {kind}.",
                hint="`basalt apply -f` takes every kind.",
            )
    return found


def _listing(verbs: click.Group, kind: Kind) -> None:
    @verbs.command("list", help=f"List {kind.verb}s.")
    @connected
    @namespaced()
    @everywhere
    @printed
    def list_all(session: Session, namespace: str | None, everywhere: bool, output: Output) -> None:
        where = "" if everywhere else session.namespace(namespace)
        found = kind.resource(session.client).list(namespace=where, include=output.include)
        rows = sorted(found, key=lambda row: (row["namespace"], row["name"]))
        output.rows(rows, kind.columns(session) if rows else (), kind.verb)


def _getting(verbs: click.Group, kind: Kind) -> None:
    @verbs.command(help=f"Show a {kind.verb}.")
    @connected
    @named(kind.verb)
    @namespaced()
    @printed
    def get(session: Session, names: list[str], namespace: str | None, output: Output) -> None:
        name = one(names, f"name is mandatory to get the particular {kind.verb} details")
        row = kind.resource(session.client).get(name, session.namespace(namespace))
        output.one(row, kind.columns(session), kind.verb)


def _describing(verbs: click.Group, kind: Kind) -> None:
    @verbs.command(help=f"Print a {kind.verb} as it is, or all of a namespace.")
    @connected
    @named(kind.verb)
    @namespaced()
    @click.option("-o", "--format", "form", default="yaml", help="yaml or json  [yaml]")
    def describe(session: Session, names: list[str], namespace: str | None, form: str) -> None:
        if form not in ("yaml", "json"):
            raise Refused(f"Unsupported format: {form}")
        where, resource = session.namespace(namespace), kind.resource(session.client)
        rows = [resource.get(name, where) for name in names] or list(resource.list(namespace=where, include="manifest"))
        for place, row in enumerate(rows):
            if place:
                click.echo("\n")
            if form == "json":
                data(row["manifest"], "json")
            else:
                click.echo(as_yaml(row["manifest"]), nl=False)


def _deleting(verbs: click.Group, kind: Kind) -> None:
    @verbs.command(help=f"Delete {kind.verb}s with the jobs that they made.")
    @connected
    @named(kind.verb)
    @namespaced()
    @click.option("-f", "--file", "source", default="", type=click.Path(), help="a file that names them")
    def delete(session: Session, names: list[str], namespace: str | None, source: str) -> None:
        where, resource = session.namespace(namespace), kind.resource(session.client)

        def work(key: str) -> None:
            space, _, name = key.rpartition("/")
            resource.delete(name, space or where)
            click.echo(f"Deleted {kind.kind}: {space or where}/{name}")

        if source:
            names = [f"{document.namespace or where}/{document.name}" for document in _of_kind(source, kind.kind)]
        each(names, f"{kind.verb} name must be specified", work)


jobflow = group(
    Kind("jobflow", "JobFlow", "Flows of jobs that depend on each other.", lambda c: c.flows, lambda s: columns.flows(s.now))
)
jobtemplate = group(
    Kind(
        "jobtemplate", "JobTemplate", "Templates that flows make jobs from.", lambda c: c.templates, lambda _: columns.templates()
    )
)
