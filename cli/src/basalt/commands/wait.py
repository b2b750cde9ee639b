"""`wait`: until jobs are in a phase, or have been in one, or are gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import click
from rich.console import Console
from rich.status import Status

from basalt.client.errors import NotFound, Refused, ServerFailed, Unreachable
from basalt.client.rows import JobRow
from basalt.terminal.ages import seconds
from basalt.terminal.exits import EndedOtherwise, Missing, TimedOut
from basalt.terminal.options import connected, named, namespaced
from basalt.terminal.running import Verb, warn
from basalt.terminal.session import Session

PHASES = (
    "Pending", "Aborting", "Aborted", "Running", "Restarting", "Completing", "Completed", "Terminating", "Terminated", "Failed",
)  # fmt: skip
FINAL = ("Completed", "Terminated", "Failed")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is waited for: to be in one of the phases, to have been in one (`condition`), or to be gone."""

    how: str
    phases: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Wanted:
        """`phase=Running,Completed`, `condition=Running` or `delete`. Raises Refused."""
        how, _, names = text.partition("=")
        by_name = {phase.lower(): phase for phase in PHASES}
        asked = [name.strip() for name in names.split(",")]
        if how == "delete" and not names:
            return cls("delete")
        if how not in ("phase", "condition") or not names:
            raise Refused(
                f"--for={text}: this can not be waited for.",
                hint="There are --for=phase=NAME, --for=condition=NAME and --for=delete.",
            )
        for name in asked:
            if name.lower() not in by_name:
                raise Refused(f"--for={text}: {name!r} is no phase.", hint=f"There are {', '.join(PHASES)}.")
        return cls(how, tuple(by_name[name.lower()] for name in asked))

    def __str__(self) -> str:
        return "gone" if self.how == "delete" else " or ".join(self.phases)

    def holds(self, job: JobRow) -> bool:
        """Whether a job is, or has been, where it should be. One that is deleted is nowhere."""
        if self.how == "delete":
            return bool(job.get("deleted_at"))
        if job.get("deleted_at") and self.how == "phase":
            return False
        passed = {job["phase"]}
        if self.how == "condition":
            passed |= {change["phase"] for change in job.get("changes") or ()}
        return not passed.isdisjoint(self.phases)

    def is_lost(self, job: JobRow) -> bool:
        """Whether a job can not get there any more by itself."""
        return self.how != "delete" and job["phase"] in FINAL


@click.command(cls=Verb)
@connected
@named("job")
@namespaced()
@click.option("--for", "wanted", default="phase=Completed", metavar="phase=NAME|condition=NAME|delete", help="[phase=Completed]")
@click.option("--timeout", default="0", metavar="5m", help="how long; 0: for ever  [0]")
def wait(session: Session, names: list[str], namespace: str | None, wanted: str, timeout: str) -> None:
    """Wait for jobs. `condition` also holds when the job has been in the phase before."""
    if not names:
        raise Missing("a job to wait for must be named")
    asked, limit = Wanted.parse(wanted), seconds(timeout)
    end = time.monotonic() + limit if limit else None
    for name in names:
        _one(session, name, session.namespace(namespace), asked, end)
        click.echo(f"job/{name} is {asked}" if asked.how != "condition" else f"job/{name} has been {asked}")


def _one(session: Session, name: str, namespace: str, wanted: Wanted, end: float | None) -> None:
    """Look at the job whenever the live channel says that it has changed, and now and then besides."""
    try:
        job = session.client.jobs.get(name, namespace, gone=True)
    except NotFound:
        if wanted.how == "delete":
            return
        raise
    if _settled(job, wanted):
        return
    changed = False
    with _progress() as show:
        show(job)
        for message in session.client.listen({f"job:{job['uid']}": []}, tick=1.0, on_trouble=warn):
            if end is not None and time.monotonic() > end:
                raise TimedOut(f"Job {namespace}/{name} is {job['phase']}, and not {wanted}, at the end of the time.")
            changed = changed or message is not None
            if not changed:
                continue
            try:
                job = session.client.jobs.get(job["uid"], gone=True)
            except (Unreachable, ServerFailed):
                continue  # the live channel tells of it, and comes back
            changed = False
            show(job)
            if _settled(job, wanted):
                return


def _settled(job: JobRow, wanted: Wanted) -> bool:
    if wanted.holds(job):
        return True
    if job.get("deleted_at"):
        raise EndedOtherwise(f"Job {job['namespace']}/{job['name']} was deleted, and was not {wanted}.")
    if wanted.is_lost(job):
        raise EndedOtherwise(f"Job {job['namespace']}/{job['name']} ended as {job['phase']}, and not as {wanted}.")
    return False


class _progress:
    """One line on a terminal that says where the job is."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._status: Status | None = None

    def __enter__(self) -> Callable[[JobRow], None]:
        if self._console.is_terminal:
            self._status = self._console.status("")
            self._status.start()
        return self._show

    def _show(self, job: JobRow) -> None:
        if self._status is not None:
            pods = f"{job['running']} of {job['replicas']} pods run, {job['succeeded']} done, {job['failed']} failed"
            self._status.update(f"{job['name']}: {job['phase']}, {pods}")

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
