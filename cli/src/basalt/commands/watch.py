"""`watch`: jobs, or one job with its pods, as they change. On a terminal a table that moves, else a line a change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from basalt.client.live import Message
from basalt.client.rows import JobRow, PodRow
from basalt.commands import columns
from basalt.terminal.ages import since
from basalt.terminal.options import connected, jobs, namespaced, queues
from basalt.terminal.options import everywhere as everywhere_option
from basalt.terminal.running import Verb, warn
from basalt.terminal.session import Session
from basalt.terminal.table import lines
from basalt.terminal.words import in_own_language

SHOWN = 500
COLOURS = {
    "running": "green", "completed": "bright_black", "failed": "red", "aborted": "yellow", "terminating": "yellow",
    "inqueue": "cyan", "pending": "blue", "restarting": "magenta",
}  # fmt: skip
ENDED = ("Completed", "Terminated", "Failed", "Aborted")


@click.command(cls=Verb)
@connected
@click.argument("job", default="", shell_complete=jobs)
@namespaced()
@everywhere_option
@click.option("-q", "--queue", default="", shell_complete=queues, help="only of this queue")
@click.option("--keep", is_flag=True, help="go on when the job has ended")
def watch(session: Session, job: str, namespace: str | None, everywhere: bool, queue: str, keep: bool) -> None:
    """Watch jobs live; or one job with its pods, until it has ended."""
    where = "" if everywhere else session.namespace(namespace)
    if job:
        _watch_one(session, job, where or "default", keep)
    else:
        _watch_all(session, where, queue)


class Clock:
    """The cluster's time, going on from when it was asked; it may run faster than ours."""

    def __init__(self, session: Session) -> None:
        self._cluster, self._own = session.now, datetime.now(UTC)

    def now(self) -> datetime:
        return self._cluster + max(datetime.now(UTC) - self._own, timedelta(0))


def _watch_all(session: Session, namespace: str, queue: str) -> None:
    found = session.client.jobs.list(namespace=namespace, queue=queue, limit=SHOWN)
    rows = {row["uid"]: row for row in found}
    messages = session.client.listen({"jobs": list(rows)}, tick=1.0, on_trouble=warn)
    everywhere = not namespace
    fits = lambda row: (everywhere or row["namespace"] == namespace) and (not queue or row["queue"] == queue)  # noqa: E731
    console = Console()
    clock = Clock(session)
    if not console.is_terminal:
        _lines_of(list(rows.values()), everywhere, headers=True)
        for changed in _jobs_changed(messages, rows, fits):
            _lines_of(changed, everywhere, headers=False)
        return
    with Live(console=console, screen=False, auto_refresh=False) as live:
        live.update(_table(list(rows.values()), clock.now(), everywhere, console.height), refresh=True)
        for _ in _jobs_changed(messages, rows, fits):
            live.update(_table(list(rows.values()), clock.now(), everywhere, console.height), refresh=True)


def _jobs_changed(messages: Iterator[Message | None], rows: dict[str, JobRow], fits: Any) -> Iterator[list[JobRow]]:
    """The rows that each message changed; the rows are kept up to date."""
    for message in messages:
        changed: list[JobRow] = []
        for row in cast(list[JobRow], (message or {}).get("changed") or []):
            if fits(row) and rows.get(row["uid"]) != row:
                rows[row["uid"]] = {**rows.get(row["uid"], row), **row}
                changed.append(rows[row["uid"]])
        changed += [{**rows.pop(uid), "phase": "(deleted)"} for uid in (message or {}).get("gone") or () if uid in rows]
        yield changed


def _lines_of(rows: list[JobRow], everywhere: bool, *, headers: bool) -> None:
    table = lines(columns.jobs(everywhere=everywhere), rows, headers=headers)
    if table:
        click.echo("\n".join(table))


def _table(rows: list[JobRow], now: datetime, everywhere: bool, height: int) -> RenderableType:
    rows.sort(key=lambda row: row["created_at"], reverse=True)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in (*(["Namespace"] if everywhere else []), "Name", "Queue", "Phase", "Pods", "GPUs", "Age", "Why"):
        table.add_column(title, no_wrap=title != "Why")
    for row in rows[: max(height - 3, 5)]:
        colour = COLOURS.get(row["mark"], "")
        table.add_row(
            *([row["namespace"]] if everywhere else []),
            row["name"],
            row["queue"],
            Text(row["phase"], style=colour),
            f"{row['running']}/{row['replicas']}",
            str(row["gpus"] or ""),
            since(row["created_at"], now),
            Text(in_own_language(row["why"]), style="dim", no_wrap=True, overflow="ellipsis"),  # this alone gives way
        )
    more = len(rows) - max(height - 3, 5)
    return Group(table, Text(f"… and {more} more", style="dim")) if more > 0 else table


def _watch_one(session: Session, name: str, namespace: str, keep: bool) -> None:
    job = session.client.jobs.get(name, namespace)
    pods = {pod["uid"]: pod for pod in job.get("pods") or ()}
    messages = session.client.listen({f"job:{job['uid']}": None}, tick=1.0, on_trouble=warn)
    console, clock = Console(), Clock(session)
    if not console.is_terminal:
        _tell(messages, job, pods, keep)
        return
    with Live(console=console, auto_refresh=False) as live:
        for seen in _job_changes(messages, job, pods):
            live.update(_panel(seen, list(pods.values()), clock.now(), console.height), refresh=True)
            if seen["phase"] in ENDED and not keep:
                return


def _job_changes(messages: Iterator[Message | None], job: JobRow, pods: dict[str, PodRow]) -> Iterator[JobRow]:
    yield job
    for message in messages:
        for row in cast(list[JobRow], (message or {}).get("changed") or []):
            job = row
        for pod in cast(list[PodRow], (message or {}).get("pods") or []):
            pods[pod["uid"]] = pod
        if job["uid"] in ((message or {}).get("gone") or ()):
            return
        yield job


def _tell(messages: Iterator[Message | None], job: JobRow, pods: dict[str, PodRow], keep: bool) -> None:
    """A line for each new phase of the job and state of a pod."""
    told: dict[str, str] = {}
    for seen in _job_changes(messages, job, pods):
        _say(told, f"job/{job['name']}", _of_job(seen))
        for pod in sorted(pods.values(), key=lambda each: each["name"]):
            _say(told, f"pod/{pod['name']}", _of_pod(pod))
        if seen["phase"] in ENDED and not keep:
            return
    click.echo(f"job/{job['name']} is deleted")


def _say(told: dict[str, str], what: str, text: str) -> None:
    if told.get(what) != text:
        told[what] = text
        click.echo(f"{what} {text}")


def _of_job(job: JobRow) -> str:
    why = in_own_language(job["why"])
    return job["phase"] + (f": {why}" if why and job["phase"] == "Pending" else "")


def _of_pod(pod: PodRow) -> str:
    if pod.get("deleted_at"):
        return "deleted"
    return (pod["word"] or pod["phase"]) + (f" on {pod['node']}" if pod["node"] else "")


def _panel(job: JobRow, pods: list[PodRow], now: datetime, height: int) -> RenderableType:
    head = Text.assemble(
        (job["name"], "bold"), "  ", (job["phase"], COLOURS.get(job["mark"], "")), f" for {since(job['phase_since'], now)}"
    )
    counts = f"{job['running']} of {job['replicas']} pods run, {job['pending']} pending, "
    counts += f"{job['succeeded']} done, {job['failed']} failed"
    parts: list[RenderableType] = [head, Text(counts)]
    if why := in_own_language(job["why"]):
        parts.append(Text(why, style="yellow"))
    alive = sorted((pod for pod in pods if not pod.get("deleted_at")), key=lambda pod: (pod["task"], pod["index"]))
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("Pod", "State", "Node", "GPUs", "Restarts", "Age"):
        table.add_column(title, no_wrap=True)
    for pod in alive[: max(height - 7, 5)]:
        table.add_row(
            pod["name"],
            Text(pod["word"] or pod["phase"], style=COLOURS.get(pod["mark"], "")),
            pod["node"],
            ",".join(map(str, pod["gpus"])),
            columns.restarts(pod, now),
            since(pod["created_at"], now),
        )
    return Group(*parts, table)
