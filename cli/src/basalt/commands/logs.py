"""`logs`: of all pods of a job, interleaved in the order of time."""

from __future__ import annotations

import sys

import click

from basalt.client.errors import NotFound
from basalt.client.logs import Line
from basalt.terminal.ages import seconds
from basalt.terminal.options import connected, jobs, namespaced
from basalt.terminal.running import Verb, warn
from basalt.terminal.session import Session

ENDED = ("Completed", "Terminated", "Failed", "Aborted")
COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "bright_cyan", "bright_yellow", "bright_green", "bright_magenta")


@click.command(cls=Verb)
@connected
@click.argument("job", shell_complete=jobs)
@namespaced()
@click.option("-f", "--follow", is_flag=True, help="go on with what comes, until the job has ended")
@click.option("-t", "--task", default="", help="only pods of this task")
@click.option("--pod", default="", help="only this pod")
@click.option("-c", "--container", default="", help="only this container")
@click.option("-p", "--previous", is_flag=True, help="of the attempt before the newest")
@click.option("--tail", type=click.IntRange(0), default=None, help="only the last so many lines")
@click.option("--since", default="", metavar="5m", help="only what is newer")
@click.option("--timestamps", is_flag=True, help="each line begins with its instant")
@click.option("--prefix/--no-prefix", default=None, help="whether lines say whose they are  [when there are several pods]")
def logs(
    session: Session,
    job: str,
    namespace: str | None,
    follow: bool,
    task: str,
    pod: str,
    container: str,
    previous: bool,
    tail: int | None,
    since: str,
    timestamps: bool,
    prefix: bool | None,
) -> None:
    """Print what a job's pods print."""
    where = session.namespace(namespace)
    age = max(1, round(seconds(since))) if since else None
    row = session.client.jobs.get(job, where, gone=True)
    tasks = [each["name"] for each in row.get("tasks") or ()]
    if task and task not in tasks:
        raise NotFound(f"Job {where}/{job} has no task {task!r}; it has {', '.join(tasks)}.")
    if prefix is None:
        prefix = not pod and row["replicas"] > 1
    lines = session.client.logs(
        job,
        where,
        still=lambda: session.client.jobs.get(row["uid"], gone=True)["phase"] not in ENDED,
        on_trouble=warn,
        follow=follow,
        task=task,
        pod=pod,
        container=container,
        previous=previous,
        tailLines=tail,
        sinceSeconds=age,
    )
    printer = Printer(prefix=prefix, stamps=timestamps)
    for line in lines:
        printer.show(line)
    printer.end()


class Printer:
    """Lines as they come; one that goes on is ended when another pod's comes in between."""

    def __init__(self, *, prefix: bool, stamps: bool) -> None:
        self._prefix, self._stamps = prefix, stamps
        self._open: tuple[str, str] | None = None
        self._colours: dict[str, str] = {}

    def show(self, line: Line) -> None:
        """Print one."""
        key = (line.pod, line.container)
        if self._open != key:
            self.end()
            click.echo(self._head(line), nl=False)
        click.echo(line.text, nl=line.full)
        self._open = None if line.full else key
        sys.stdout.flush()

    def end(self) -> None:
        """End a line that goes on."""
        if self._open is not None:
            click.echo()
            self._open = None

    def _head(self, line: Line) -> str:
        head = ""
        if self._prefix:
            colour = self._colours.setdefault(line.pod, COLOURS[len(self._colours) % len(COLOURS)])
            head += click.style(f"[{line.pod} {line.container}]", fg=colour) + " "
        return head + (f"{line.at} " if self._stamps else "")
