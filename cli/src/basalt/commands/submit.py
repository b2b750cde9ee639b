"""`submit` and `apply`: manifests to the server, faults back with their lines."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import click
from rich.console import Console
from rich.progress import track

from basalt.client.errors import BasaltError, Conflict, NotFound, Refused
from basalt.client.rows import Applied
from basalt.terminal import manifests, starts
from basalt.terminal.exits import Missing, Partial
from basalt.terminal.manifests import Document
from basalt.terminal.options import connected, namespaced
from basalt.terminal.running import Verb, tell
from basalt.terminal.session import Session
from basalt.terminal.show import as_list, data
from basalt.terminal.words import in_own_language

PATIENCE = 30.0
"""Seconds that may be spent on when a job would start."""
RESOURCES = {"Job": "jobs", "JobFlow": "flows", "JobTemplate": "templates", "CronJob": "crons"}
FORMS = click.Choice(("text", "json", "yaml", "name"))


@click.command(cls=Verb)
@connected
@click.argument("source", metavar="FILE|-", type=click.Path(allow_dash=True), default="", required=False)
@namespaced()
@click.option(
    "-b", "--blueprint", default="", metavar="NAME", help="fill out a blueprint instead of a file; NAME@3 is its version 3"
)
@click.option(
    "-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="a value of the blueprint; several times"
)
@click.option("-N", "--name", "title", default="", help="what the blueprint's job is called  [the next free name]")
@click.option("-q", "--queue", default="", help="the queue of the blueprint's job")
@click.option(
    "--set", "edits", multiple=True, metavar="PATH=VALUE", help="set a value, such as spec.queue=research; several times"
)
@click.option("--dry-run", is_flag=True, help="check everything, and say where it would run; nothing is submitted")
@click.option("-o", "--output", "form", type=FORMS, default="text", help="how to print  [text]")
def submit(
    session: Session,
    source: str,
    namespace: str | None,
    blueprint: str,
    parameters: tuple[str, ...],
    title: str,
    queue: str,
    edits: tuple[str, ...],
    dry_run: bool,
    form: str,
) -> None:
    """Submit a job, flow, template or cron job; of several documents all or none. Or fill out a blueprint."""
    if bool(source) == bool(blueprint):
        raise Missing("name a file to submit, or a blueprint to fill out", hint="basalt submit FILE, or --blueprint NAME.")
    where = session.namespace(namespace)
    if blueprint:
        order = {"name": title, "namespace": namespace or "", "queue": queue}
        _fill_out(session, blueprint, parameters, order, dry_run, form)
        return
    label = "standard input" if source == "-" else source
    text = manifests.read(source)
    found = manifests.documents(text, label)
    if edits:
        found = [_edited(document, edits) for document in _only(found, label)]
        text = found[0].text
    with _named(label):
        if len(found) == 1 and found[0].kind in RESOURCES:
            _submit_one(session, found[0], where, dry_run, form)
        else:
            _submit_all(session, text, where, dry_run, form)


def _fill_out(
    session: Session, blueprint: str, parameters: Sequence[str], order: dict[str, Any], dry_run: bool, form: str
) -> None:
    """Submit a job of a blueprint. Values are read as the blueprint's schema says; the server says what is wrong with them."""
    name, _at, version = blueprint.partition("@")
    kinds = session.client.blueprints.get(name)["parameters"].get("properties", {})
    given: dict[str, Any] = {}
    for each in parameters:
        key, equals, text = each.partition("=")
        if not equals:
            raise Missing(f"{each!r} gives no value", hint="Write -p NAME=VALUE.")
        given[key] = _typed(kinds.get(key, {}).get("type", "string"), text)
    order = {key: value for key, value in order.items() if value} | {"parameters": given}
    if version:
        order["version"] = int(version) if version.isdigit() else version
    with _named(f"blueprint {name}"):
        answer = session.client.blueprints.submit(name, order, dry_run=dry_run)
    manifest = answer["manifest"] if dry_run else answer
    if form in ("json", "yaml"):
        data(manifest, form)
        return
    title = manifest["metadata"]["name"] if dry_run else answer["name"]
    word = "is valid (dry run: nothing was submitted)" if dry_run else "submitted"
    click.echo(f"job/{title}" + (f" {word}" if form == "text" else ""))
    if dry_run and form == "text":
        for line in _forecast(session, manifest):
            click.echo(line)


def _typed(kind: str, text: str) -> Any:
    """A text as the value that the schema wants; itself where it is none, so that the server can say so."""
    if kind == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _only(found: list[Document], title: str) -> list[Document]:
    if len(found) > 1:
        raise Refused(f"--set edits one document; {title} holds {len(found)}.")
    return found


def _edited(document: Document, edits: Sequence[str]) -> Document:
    obj = manifests.edited(document.obj, edits)
    return replace(document, obj=obj, text=json.dumps(obj))


class _named:
    """Refusals inside say which file they are about."""

    def __init__(self, title: str) -> None:
        self.title = title

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (Refused, Conflict)) and not error.message.startswith(self.title):
            whole = [fault.detail for fault in error.faults if not fault.pointer] or ([] if error.faults else [error.message])
            error.faults = tuple(fault for fault in error.faults if fault.pointer)
            count = [f"{len(error.faults)} faults:"] if len(error.faults) > 1 else []
            error.message = " ".join([f"{self.title} was refused:", *whole, *count])


def _submit_one(session: Session, document: Document, namespace: str, dry_run: bool, form: str) -> None:
    resource: Any = getattr(session.client, RESOURCES[document.kind])
    kind = document.kind.lower()
    if not dry_run:
        row = resource.create(document.text, namespace=namespace)
        if form in ("json", "yaml"):
            data(row["manifest"], form)
        else:
            click.echo(f"{kind}/{row['name']}" + (" submitted" if form == "text" else ""))
        return
    manifest = resource.check(document.text, namespace=namespace)["manifest"]
    if form in ("json", "yaml"):
        data(manifest, form)
        return
    name = manifest["metadata"].get("name") or document.name
    click.echo(f"{kind}/{name}" + (" is valid (dry run: nothing was submitted)" if form == "text" else ""))
    if form == "text" and kind == "job":
        for line in _forecast(session, manifest):
            click.echo(line)


def _forecast(session: Session, manifest: Any) -> Iterator[str]:
    """Where the scheduler would place it now, or why not and until when; nothing from a server that does not say."""
    try:
        said = _tried(session, json.dumps({**manifest, "status": None}))
    except BasaltError:
        return
    queue = manifest["spec"].get("queue") or "default"
    if not said.get("starts"):
        yield f"It would wait: {in_own_language(said.get('why')) or 'the scheduler says no more'}"
        yield from starts.of_draft(said.get("start"), queue, session.now)
        return
    yield "It would start in the next cycle:"
    for place in said.get("places") or ():
        gpus = f"  GPUs {','.join(map(str, place['gpus']))}" if place.get("gpus") else ""
        yield f"  {place['pod']} on {place['node']}{gpus}"
    for victim in said.get("evicted") or ():
        yield f"  pod {victim.get('pod')} of {victim.get('job')} would have to give way"
    yield from starts.whom_it_delays(said.get("start"))


def _tried(session: Session, text: str) -> Any:
    """A dry run, asked again for a while until it is known when the job is likely to start."""
    said = session.client.jobs.dry_run(text)
    end = time.monotonic() + PATIENCE
    while (said.get("start") or {}).get("state") == "working" and time.monotonic() < end:
        said = session.client.jobs.dry_run(text, wait=5)
    return said


def _submit_all(session: Session, text: str, namespace: str, dry_run: bool, form: str) -> None:
    """Several at once: tried before anything is written, and none may exist."""
    trial = session.client.apply(text, namespace=namespace, dry_run=True)
    existing = [
        f"{row['kind']} {row['namespace']}/{row['name']}".replace(" /", " ") for row in trial if row["status"] != "created"
    ]
    if existing:
        raise Conflict(
            f"these exist already: {', '.join(existing)}", hint="Nothing was submitted. `basalt apply -f` changes what exists."
        )
    results = trial if dry_run else session.client.apply(text, namespace=namespace)
    _told(session, results, "submitted", dry_run, form)


def _told(session: Session, results: list[Applied], word: str, dry_run: bool, form: str) -> None:
    if form in ("json", "yaml"):
        data(as_list(list(results)) if form == "yaml" else list(results), form)
        return
    for row in results:
        end = (
            ""
            if form == "name"
            else f" {word if row['status'] == 'created' and word else row['status']}{' (dry run)' if dry_run else ''}"
        )
        click.echo(f"{row['kind'].lower()}/{row['name']}{end}")


@click.command(cls=Verb)
@connected
@click.option(
    "-f", "--filename", "sources", multiple=True, type=click.Path(allow_dash=True), help="a file, a folder or -; several times"
)
@namespaced()
@click.option("--dry-run", is_flag=True, help="say what would change; nothing is changed")
@click.option("-o", "--output", "form", type=FORMS, default="text", help="how to print  [text]")
def apply(session: Session, sources: tuple[str, ...], namespace: str | None, dry_run: bool, form: str) -> None:
    """Create or change what manifests describe; of each file all or none."""
    if not sources:
        raise Missing("there is nothing to apply", hint="Name files with -f.")
    found = manifests.files(sources)
    texts = [(source, manifests.read(source)) for source in found]
    for source, text in texts:
        manifests.documents(text, source)
    refused = 0
    shown: list[Applied] = []
    for source, text in _progress(texts):
        try:
            with _named("standard input" if source == "-" else source):
                shown += session.client.apply(text, namespace=session.namespace(namespace), dry_run=dry_run)
        except (Refused, Conflict, NotFound) as error:
            if len(texts) == 1:
                raise
            refused += 1
            tell(error)
    _told(session, shown, "", dry_run, form)
    if refused:
        raise Partial(f"{refused} of {len(texts)} files were refused, the others are applied.")


def _progress(texts: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The files, with a bar on a terminal when there are many."""
    console = Console(stderr=True)
    if len(texts) < 5 or not console.is_terminal:
        yield from texts
    else:
        yield from track(texts, "Applying", console=console, transient=True)
