"""`pod list`."""

from __future__ import annotations

import click

from basalt.client.errors import Refused
from basalt.client.rows import PodRow
from basalt.commands import columns
from basalt.terminal.options import connected, everywhere, jobs, namespaced, printed, queues
from basalt.terminal.running import Verbs
from basalt.terminal.session import Session
from basalt.terminal.show import Output


@click.group(cls=Verbs)
def pod() -> None:
    """Pods of jobs, and others that wait in queues."""


@pod.command("list")
@connected
@click.option("-q", "--queue", default="", shell_complete=queues, help="only of this queue, bare pods too")
@click.option("-j", "--job", default="", shell_complete=jobs, help="only of this job")
@namespaced()
@everywhere
@printed
def list_pods(session: Session, queue: str, job: str, namespace: str | None, everywhere: bool, output: Output) -> None:
    """List pods: of all jobs, of a job, or of a queue."""
    where = "" if everywhere else session.namespace(namespace)
    rows = _found(session, where, queue, job, output.include)
    rows.sort(key=lambda row: (row["namespace"], row["name"]))
    output.rows(rows, columns.pods(session.now, everywhere=everywhere) if rows else (), "pod")


def _found(session: Session, namespace: str, queue: str, job: str, include: str) -> list[PodRow]:
    pods = session.client.pods
    if job:
        of_name = [row for row in session.client.jobs.list(namespace=namespace, name=job) if row["name"] == job]
        rows = [row for each in of_name for row in pods.list(job=each["uid"], include=include)]
        if queue and any(row.get("queue") and row.get("queue") != queue for row in rows):
            raise Refused(f"the input vcjob {job} does not match the queue {queue}")
        return rows
    if queue:
        return list(pods.list(namespace=namespace, queue=queue, include=include))
    return [row for row in pods.list(namespace=namespace, include=include) if row.get("job_uid")]
