"""The line of waiting jobs, and a job's place in it: one count for pages, the API and what is foretold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.model.jobs import JobInfo
from scheduler.whatif import Played


@dataclass(frozen=True, slots=True)
class Position:
    """`rank` of `among` the waiting jobs of its queue, `place` of `line` among all; both from 1."""

    rank: int
    among: int
    place: int
    line: int


def waiting(played: Played) -> list[str]:
    """Those that are served and do not start, by PodGroup in their order."""
    return [uid for uid in played.line if uid not in played.started]


def position(played: Played, jobs: Mapping[str, JobInfo], uid: str, queue: str = "") -> Position | None:
    """Where a job stands; None where it is in no line. `queue` is that of a job that the model does not know."""
    line = waiting(played)
    if uid not in line:
        return None
    queue = queue or jobs[uid].queue
    mine = [each for each in line if each == uid or (each in jobs and jobs[each].queue == queue)]
    return Position(mine.index(uid) + 1, len(mine), line.index(uid) + 1, len(line))
