"""REST of a job's timeline: the same lanes, durations and gaps as on its page, as data."""

from __future__ import annotations

from typing import Any

from cluster import runtime
from cluster.access import policy
from jobs.models import Job, PhaseChange, Pod
from jobs.pages import timeline
from jobs.pages.axis import Area, Bar, Lane
from jobs.pages.facts import gather
from jobs.pages.lives import lives
from jobs.rows import iso

Body = dict[str, Any]


def told(user: Any, job: Job) -> Body:
    """The timeline of a job as data: instants in ISO 8601, times in seconds."""
    present = runtime.now()
    changes, tasks = list(PhaseChange.objects.filter(job_uid=job.uid)), list(job.tasks.all())
    pods = policy().visible(user, Pod.objects.filter(job_uid=job.uid))
    drawn = timeline.build(job, changes, lives(pods), present, gather(job, changes, pods, tasks, present))
    return {
        "start": iso(drawn.start),
        "end": iso(None if drawn.now is not None else drawn.end),
        "lanes": [_lane(lane) for lane in drawn.lanes],
        "durations": [
            {"state": each.state, "phase": each.phase, "word": each.word, "seconds": each.time.total_seconds()}
            for each in drawn.durations
        ],
        "gaps": [
            {
                "from": iso(gap.start),
                "to": iso(gap.end),
                "seconds": gap.until(present).total_seconds(),
                "state": gap.state,
                "stage": gap.stage,
                "code": gap.code,
                "text": gap.text,
            }
            for gap in drawn.gaps
        ],
    }


def _lane(lane: Lane) -> Body:
    return {
        "kind": lane.kind,
        "name": lane.name,
        "bars": [_bar(bar) for bar in lane.bars],
        "points": [{"at": iso(point.at), "code": point.code, "text": point.text} for point in lane.points],
        "samples": _samples(lane.area),
    }


def _bar(bar: Bar) -> Body:
    return {"state": bar.state, "phase": bar.phase, "from": iso(bar.start), "to": iso(bar.end), "text": bar.label}


def _samples(area: Area | None) -> list[list[Any]]:
    return [[iso(at), value, against] for at, value, against in area.samples] if area else []
