"""`explain`: why a job waits, in numbers, and what would unblock it."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import click
from rich.console import Console

from basalt.client.errors import NotFound
from basalt.client.rows import Explanation, JobRow, Manifest, Verdict
from basalt.terminal import starts
from basalt.terminal.ages import since
from basalt.terminal.options import connected, jobs, namespaced
from basalt.terminal.running import Verb
from basalt.terminal.session import Session
from basalt.terminal.show import data
from basalt.terminal.words import amount, in_own_language

_MARKS = {"ok": "✓", "held": "✗"}


@click.command(cls=Verb)
@connected
@click.argument("job", shell_complete=jobs)
@namespaced()
@click.option(
    "--wait", "patience", type=click.IntRange(0, 120), default=20, help="seconds that may be spent on what would help  [20]"
)
@click.option("-o", "--output", "form", type=click.Choice(("text", "json", "yaml")), default="text", help="how to print  [text]")
def explain(session: Session, job: str, namespace: str | None, patience: int, form: str) -> None:
    """Say why a job waits, and what would unblock it."""
    row = session.client.jobs.get(job, session.namespace(namespace), gone=True)
    said = _asked(session, row, patience)
    if form != "text":
        data(said, form)
        return
    for line in lines(row, said, session.now):
        click.echo(line)


def _asked(session: Session, row: JobRow, patience: int) -> Explanation:
    """The server's explanation, asked again while it is being worked out; of a server without one, what the job's row says."""
    end = time.monotonic() + patience
    console = Console(stderr=True)
    try:
        with console.status("Looking for what would help") if console.is_terminal else _Quiet():
            while True:
                left = end - time.monotonic()
                said: Explanation = session.client.jobs.explain(row["uid"], wait=max(0, min(10, int(left))))
                is_open = (said.get("unblock") or {}).get("state") == "working" or _is_undecided(said)
                if not is_open or left <= 0:
                    return said
                time.sleep(0.2)
    except NotFound:
        return of_row(row)


class _Quiet:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _is_undecided(said: Explanation) -> bool:
    """Whether it is too new for the scheduler to have said anything about it."""
    return said["phase"] == "Pending" and not said.get("waits")


def of_row(row: JobRow) -> Explanation:
    """What the row alone says."""
    return {
        "uid": row["uid"],
        "namespace": row["namespace"],
        "name": row["name"],
        "queue": row["queue"],
        "phase": row["phase"],
        "group_phase": row["group_phase"],
        "waits": row["verdict"] is not None,
        "why": row["why"],
        "verdict": row["verdict"],
    }


def lines(row: JobRow, said: Explanation, now: datetime) -> Iterator[str]:
    """The explanation as text."""
    bold = click.style(f"{said['namespace']}/{said['name']}", bold=True)
    yield f"{bold} in queue {said['queue']}: {said['phase']} for {since(row['phase_since'], now)}"
    if not said.get("waits"):
        nothing = "The scheduler has not decided about it yet." if _is_undecided(said) else "It waits for nothing."
        yield in_own_language(said.get("why")) or nothing
        return
    yield ""
    yield f"Why        {in_own_language(said.get('statement')) or in_own_language(said.get('why'))}"
    yield from _numbers(said)
    yield from _stages(said)
    yield from _rejected(said)
    yield from _position(said)
    yield from _start(said, now)
    if advice := in_own_language(said.get("advice")):
        yield f"Advice     {advice}"
    yield from _ways(said, row.get("manifest") or {})


def _numbers(said: Explanation) -> Iterator[str]:
    numbers = said.get("numbers")
    if numbers:
        told = [f"{in_own_language(each.get('label'))} {in_own_language(each.get('text'))}" for each in numbers]
        yield f"Numbers    {', '.join(told)}"
        return
    verdict: Verdict = said.get("verdict") or {}
    resource = verdict.get("resource", "")
    if resource and verdict.get("asked"):
        counted: dict[str, Any] = dict(verdict)
        told = [f"{key} {amount(counted[key], resource)}" for key in ("asked", "free", "short") if counted.get(key) is not None]
        yield f"Numbers    {resource}: {', '.join(told)}"


def _stages(said: Explanation) -> Iterator[str]:
    stages = said.get("stages")
    if stages:
        yield "Stages     " + "  ".join(
            f"{_MARKS.get(each['status'], '·')} {in_own_language(each.get('label'))}" for each in stages
        )
    elif verdict := said.get("verdict"):
        yield f"Stage      {verdict.get('stage', '')} ({verdict.get('code', '')})"


def _rejected(said: Explanation) -> Iterator[str]:
    found = [(each.get("count"), in_own_language(each.get("label")) or each.get("cause")) for each in said.get("rejected") or ()]
    if not found:
        causes = (said.get("verdict") or {}).get("rejected") or {}
        found = [(count, cause) for cause, count in sorted(causes.items(), key=lambda item: -item[1])]
    for place, (count, label) in enumerate(found):
        yield f"{'Nodes' if place == 0 else '':<11}{count} refused: {label}"


def _position(said: Explanation) -> Iterator[str]:
    position = said.get("position")
    if position and position.get("queue"):
        mine, everybody = position["queue"], position.get("all")
        line = f"Position   {mine['rank']} of {mine['of']} in queue {said['queue']}"
        yield line + (f", {everybody['rank']} of {everybody['of']} in the cluster" if everybody else "")


def _start(said: Explanation, now: datetime) -> Iterator[str]:
    start = said.get("start")
    if start and start.get("state") == "done":
        old = "; this is old, and is being worked out anew" if start.get("old") else ""
        yield f"Start      {starts.span(start, now)}{old}"


def _edits(patch: Any, before: Any, path: str = "", *, whole: bool = False) -> Iterator[str]:
    """What a merge patch changes, in the manner of `submit --set`. `whole`: below a list, where what is left out goes."""
    goes = whole and isinstance(before, dict) and not before.keys() <= (patch.keys() if isinstance(patch, dict) else set())
    if isinstance(patch, dict) and not goes:
        for key, value in patch.items():
            step = f'"{key}"' if "." in key else key
            old = before.get(key) if isinstance(before, dict) else None
            yield from _edits(value, old, f"{path}.{step}" if path else step, whole=whole)
    elif isinstance(patch, list) and isinstance(before, list) and len(patch) == len(before):
        for place, (value, old) in enumerate(zip(patch, before)):
            yield from _edits(value, old, f"{path}[{place}]", whole=True)
    elif patch != before:
        yield shlex.quote(f"{path}={json.dumps(patch, ensure_ascii=False) if not isinstance(patch, str) else patch}")


def _ways(said: Explanation, manifest: Manifest) -> Iterator[str]:
    unblock = said.get("unblock")
    if not unblock:
        return
    yield ""
    ways = unblock.get("ways") or []
    if unblock.get("state") == "working":
        yield "What would unblock it is still being worked out: ask again, or with a longer --wait."
    elif not ways:
        yield (
            "No single change was found that would start it."
            if unblock.get("state") == "done"
            else "There is nothing to change: it goes on by itself."
        )
    else:
        tried = f" ({unblock.get('tried', 0)} runs of the scheduler)" if unblock.get("tried") else ""
        yield f"What would unblock it{tried}:"
    for number, way in enumerate(ways, 1):
        yield f"  {number}. {in_own_language(way.get('text'))} → {in_own_language(way.get('effect'))}"
        if way.get("evicted"):
            yield f"     gives way: {', '.join(sorted({each.get('job', '') for each in way['evicted']}))}"
        if way.get("delayed"):
            yield f"     delayed: {', '.join(each.get('job', '') for each in way['delayed'])}"
        if patch := way.get("patch"):
            edits = list(_edits(patch, manifest))
            in_place = f"on the job as it is: basalt apply -f FILE, with {' '.join(edits)} in it"
            copied = f"in a copy of it: basalt submit FILE {' '.join(f'--set {edit}' for edit in edits)}"
            yield f"     {in_place if way.get('in_place') else copied}"
