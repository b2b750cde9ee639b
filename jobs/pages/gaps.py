"""How long a job was in each state, and why it was not running: every gap with its cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from jobs import reasons
from jobs.choices import JobPhase
from jobs.models import Job
from jobs.pages.axis import Bar
from jobs.pages.facts import LAG, Facts

BLINK = timedelta(seconds=1)
"""Stamps are of whole seconds: what is shorter between two causes is no gap."""


@dataclass(frozen=True, slots=True)
class Duration:
    """All the time in one state, and the share of the job's life that this was."""

    state: str
    phase: str
    word: str
    time: timedelta
    share: float
    since: datetime | None = None
    """From when a clock would show `time` now, where the state lasts."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch without running pods: which state, which stage and code held it (empty: nobody did), and the sentence."""

    start: datetime
    end: datetime | None
    state: str
    word: str
    stage: str
    code: str
    text: str

    def until(self, last: datetime) -> timedelta:
        """How long it lasted, or has lasted."""
        return (self.end or last) - self.start


def durations(bars: Sequence[Bar], last: datetime) -> list[Duration]:
    """Time by state, in the order in which the states came."""
    times: dict[tuple[str, str, str], timedelta] = {}
    for bar in bars:
        key = (bar.state, bar.phase, bar.word)
        times[key] = times.get(key, timedelta()) + ((bar.end or last) - bar.start)
    total = sum(times.values(), timedelta()) or BLINK
    lasting = bars[-1] if bars and bars[-1].end is None else None
    return [
        Duration(
            *key, time, time / total, last - time if lasting and key == (lasting.state, lasting.phase, lasting.word) else None
        )
        for key, time in times.items()
        if time or lasting
    ]


def gaps(job: Job, bars: Sequence[Bar], facts: Facts, last: datetime) -> list[Gap]:
    """Every stretch in which the job neither ran nor was over, oldest first, one line a cause."""
    found: list[Gap] = []
    for bar in bars:
        if bar.state in ("running", "completed", "failed") or JobPhase(bar.phase).is_final:
            continue
        for gap in _within(job, bar, facts, last):
            before = found[-1] if found else None
            if before and before.end == gap.start and (before.state, before.text) == (gap.state, gap.text):
                found[-1] = replace(before, end=gap.end)
            else:
                found.append(gap)
    return found


def _within(job: Job, bar: Bar, facts: Facts, last: datetime) -> Iterator[Gap]:
    """The causes of one bar: what the scheduler held it for, and between these what else goes on in such a state."""
    end = bar.end or last
    at = bar.start
    for hold in facts.holds:
        begin, until = max(hold.since, bar.start), min(hold.until or end, end)
        if until - begin < BLINK and not (hold.until is None and bar.end is None):
            continue
        if begin - at >= BLINK:
            yield _unheld(bar, facts, at, begin)
        is_last = hold.until is None and bar.end is None
        verdict = job.verdict if is_last and job.verdict else hold.verdict
        text = reasons.say(verdict, job.gpu_model)
        yield Gap(max(begin, at), None if is_last else until, bar.state, bar.word, hold.stage, hold.code, text)
        at = max(at, until)
        if is_last:
            return
    if end - at >= BLINK or (at == bar.start and end > at) or bar.end is None:
        yield replace(_unheld(bar, facts, at, end), end=bar.end)


def _unheld(bar: Bar, facts: Facts, start: datetime, end: datetime) -> Gap:
    code, text = _cause(bar, facts, start, end)
    return Gap(start, end, bar.state, bar.word, "", code, text)


def _cause(bar: Bar, facts: Facts, start: datetime, end: datetime) -> tuple[str, str]:
    """What goes on in a state in which nothing is held."""
    if bar.phase == JobPhase.ABORTED:
        return "suspended", _("It was suspended, until somebody resumes it.")
    if bar.phase == JobPhase.RESTARTING:
        return "restarting", _("Its pods were stopped, to begin again.")
    if bar.state == "terminating":
        return "stopping", _("Its pods were being stopped.")
    placed = [moment.at for moment in facts.moments if moment.code == "bound" and moment.at <= end]
    if bar.state == "pending":  # not what an earlier run was given, nor what came as the state ended
        placed = [at for at in placed if bar.start <= at <= end - LAG]
    if placed:
        return "starting", _("Its pods had nodes and were starting.")
    if bar.state == "inqueue":
        return "placing", _("It was admitted; its pods were being made and placed.")
    return "looked_at", _("Nobody had decided about it yet: its gang was being made, or a cycle of the scheduler was due.")
