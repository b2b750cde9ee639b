"""`job …` and the short forms vsub, vjobs, vsuspend, vresume, vcancel."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from typing import Any

import click

from basalt.client.errors import Refused
from basalt.commands import columns, manifest, view
from basalt.terminal import manifests
from basalt.terminal.exits import Missing
from basalt.terminal.options import connected, each, everywhere, labelled, named, namespaced, one, printed, queues
from basalt.terminal.running import Verb, Verbs
from basalt.terminal.session import Session
from basalt.terminal.show import Output

ASKED = "cpu=1000m,memory=100Mi"
SHORT_NAMES = ("-n", "--name")
SHORT_NAMESPACE = ("-N", "--namespace")


@click.group(cls=Verbs)
def job() -> None:
    """Volcano Jobs: gangs of pods that start together."""


def _shape(command: Callable[..., Any]) -> Callable[..., Any]:
    """What `job run` and `vsub` make a job of."""
    for option in reversed(
        (
            click.option("-m", "--min", "minimum", type=int, default=1, help="how many pods must start together  [1]"),
            click.option("-r", "--replicas", type=int, default=1, help="how many pods  [1]"),
            click.option("-R", "--requests", default=ASKED, help=f"what each pod asks  [{ASKED}]"),
            click.option("-L", "--limits", default=ASKED, help=f"what each pod may use  [{ASKED}]"),
            click.option("-q", "--queue", default="", shell_complete=queues, help="the queue  [default]"),
        )
    ):
        command = option(command)
    return command


@job.command()
@connected
@click.argument("argument", default="", metavar="[NAME]")
@click.option("-N", "--name", default="", help="the name of the job")
@namespaced()
@click.option("-i", "--image", default="busybox", help="the image of its container  [busybox]")
@_shape
@click.option("-S", "--scheduler", default="volcano", help="the scheduler  [volcano]")
@click.option("-f", "--filename", default="", type=click.Path(), help="a YAML file of a Job, in place of the other options")
@click.option("-c", "--command", default="", help="what the container runs, split as a shell does")
def run(session: Session, argument: str, name: str, namespace: str | None, filename: str, **shape: Any) -> None:
    """Run a job made of options, or from a file."""
    where, name = session.namespace(namespace), name or argument
    if filename:
        if ".yaml" not in filename and ".yml" not in filename:
            raise Refused("only support yaml file", hint="`basalt submit` takes any file.")
        made = session.client.jobs.create(_only(filename, "Job", where, given=namespace), namespace=where)
    else:
        made = session.client.jobs.create(_made(name, where, **shape))
    click.echo(f"run job {made['name']} successfully")


def _only(filename: str, kind: str, namespace: str, *, given: str | None) -> str:
    """The text of a file that must hold one document of a kind. Raises Refused."""
    text = manifests.read(filename)
    found = manifests.documents(text, filename)
    if len(found) > 1:
        raise Refused(f"{filename} holds {len(found)} documents: one is taken.", hint="`basalt apply -f` takes many.")
    if found[0].kind != kind:
        raise Refused(f"{filename} holds a {found[0].kind or 'document without a kind'}, not a {kind}.")
    if given and found[0].namespace and found[0].namespace != namespace:
        raise Refused(
            f"the namespace of the provided object ({found[0].namespace}) does not match the one of the request ({namespace})"
        )
    return text


def _made(name: str, namespace: str, *, command: str = "", **shape: Any) -> dict[str, Any]:
    if not name:
        raise Missing("job name cannot be left blank", hint="Give it with -N.")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Refused(f"--command {command!r} cannot be split: {error}") from None
    return manifest.job(name, namespace, command=words, **shape)


@job.command("list")
@connected
@click.option("-q", "--queue", default="", shell_complete=queues, help="only of this queue")
@namespaced()
@click.option("-S", "--scheduler", default="", help="only of this scheduler")
@everywhere
@click.option("--selector", default="", help="only names with this text in them")
@labelled
@printed
def list_jobs(
    session: Session,
    queue: str,
    namespace: str | None,
    scheduler: str,
    everywhere: bool,
    selector: str,
    labels: str,
    output: Output,
) -> None:
    """List jobs."""
    _listed(session, namespace, everywhere, output, queue=queue, scheduler=scheduler, name=selector, labelSelector=labels)


def _listed(session: Session, namespace: str | None, everywhere: bool, output: Output, **filters: Any) -> None:
    where = "" if everywhere else session.namespace(namespace)
    text: str = filters.get("name", "")
    found = session.client.jobs.list(namespace=where, ordering="name", include=output.include, **filters)
    rows = sorted((row for row in found if text in row["name"]), key=lambda row: (row["namespace"], row["name"]))
    now = session.now if output.form == "wide" and rows else None
    output.rows(rows, columns.jobs(now, everywhere=everywhere), "job")


@job.command("view")
@connected
@named("job")
@namespaced()
@printed
def view_job(session: Session, names: list[str], namespace: str | None, output: Output) -> None:
    """Show all about a job."""
    name = one(names, "job name (specified by --name or -N) is mandatory to view a particular job")
    _viewed(session, name, session.namespace(namespace), output)


def _viewed(session: Session, name: str, namespace: str, output: Output, *, conditions: bool = True) -> None:
    row = session.client.jobs.get(name, namespace)
    if output.form in ("table", "wide"):
        click.echo("\n".join(view.lines(row, session.now, conditions=conditions)))
    else:
        output.one(row, columns.jobs(), "job")


def _acting(action: str, text: str) -> None:
    """A command that asks for an action of jobs."""

    @job.command(action, help=text)
    @connected
    @named("job")
    @namespaced()
    def act(session: Session, names: list[str], namespace: str | None) -> None:
        where = session.namespace(namespace)
        each(names, f"job name is mandatory to {action} a particular job", lambda name: _ask(session, action, name, where))


def _ask(session: Session, action: str, name: str, namespace: str) -> None:
    session.client.jobs.act(action, name, namespace)


_acting("suspend", "Suspend jobs: their pods go, the jobs stay.")
_acting("resume", "Resume suspended jobs.")


@job.command("delete")
@connected
@named("job")
@namespaced()
def delete(session: Session, names: list[str], namespace: str | None) -> None:
    """Delete jobs with their pods."""
    _deleted(session, names, session.namespace(namespace), "delete")


def _deleted(session: Session, names: list[str], namespace: str, verb: str) -> None:
    def work(name: str) -> None:
        session.client.jobs.delete(name, namespace)
        click.echo(f"{verb} job {name} successfully")

    each(names, f"job name is mandatory to {verb} a particular job", work)


_acting("restart", "Start jobs anew.")
_acting("terminate", "End jobs as terminated; they cannot be resumed.")
_acting("complete", "End jobs as completed.")


# --- the short forms, whose -n and -N mean each other's ---


@click.command(cls=Verb)
@connected
@click.argument("argument", default="", metavar="[NAME]")
@click.option(*SHORT_NAMES, "name", default="", help="the name of the job")
@namespaced(*SHORT_NAMESPACE)
@click.option("-i", "--image", default="", help="the image of its container  [$VOLCANO_DEFAULT_IMAGE, or busybox]")
@_shape
@click.option("-S", "--scheduler", default="", help="the scheduler  [$VOLCANO_SCHEDULER_NAME, or volcano]")
@click.option("-c", "--command", default="", help="what the container runs, split as a shell does")
def vsub(session: Session, argument: str, name: str, namespace: str | None, image: str, scheduler: str, **shape: Any) -> None:
    """Submit a job made of options. Files are taken by `vcctl job run -f`."""
    where = session.namespace(namespace or os.environ.get("VOLCANO_DEFAULT_JOB_NAMESPACE", ""))
    image = image or os.environ.get("VOLCANO_DEFAULT_IMAGE", "") or "busybox"
    scheduler = scheduler or os.environ.get("VOLCANO_SCHEDULER_NAME", "") or "volcano"
    made = session.client.jobs.create(_made(name or argument, where, image=image, scheduler=scheduler, **shape))
    click.echo(f"run job {made['name']} successfully")


@click.command(cls=Verb)
@connected
@named("job", flags=SHORT_NAMES)
@namespaced(*SHORT_NAMESPACE)
@click.option("-S", "--scheduler", default="", help="only of this scheduler")
@everywhere
@click.option("--selector", default="", help="only names with this text in them")
@printed
def vjobs(
    session: Session, names: list[str], namespace: str | None, scheduler: str, everywhere: bool, selector: str, output: Output
) -> None:
    """Show all about a job, or list the jobs of a namespace."""
    if names:
        _viewed(session, one(names, ""), session.namespace(namespace), output, conditions=False)
    else:
        _listed(session, namespace, everywhere, output, scheduler=scheduler, name=selector)


def _short(action: str, text: str) -> click.Command:
    @click.command(f"v{action}", cls=Verb, help=text)
    @connected
    @named("job", flags=SHORT_NAMES)
    @namespaced(*SHORT_NAMESPACE)
    def act(session: Session, names: list[str], namespace: str | None) -> None:
        where = session.namespace(namespace)
        each(names, f"job name is mandatory to {action} a particular job", lambda name: _ask(session, action, name, where))

    return act


vsuspend = _short("suspend", "Suspend jobs.")
vresume = _short("resume", "Resume suspended jobs.")


@click.command(cls=Verb)
@connected
@named("job", flags=SHORT_NAMES)
@namespaced(*SHORT_NAMESPACE)
def vcancel(session: Session, names: list[str], namespace: str | None) -> None:
    """Delete jobs with their pods."""
    _deleted(session, names, session.namespace(namespace), "cancel")
