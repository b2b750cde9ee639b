"""The scheduler's sink: takes each cycle's record at once and writes it in a thread of its own.

The scheduler never waits for the database. What piles up meanwhile is merged: the latest verdict of each gang, the latest
shares, and every cycle that did something.
"""

from __future__ import annotations

import threading
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import DatabaseError, connection, transaction

from cluster.away import Away
from cluster.patience import Patience
from cluster.projection import notify, writing
from cluster.runtime import now
from jobs import holds
from jobs.held import is_held
from jobs.models import Job, PodGroup
from jobs.projection import MAY_WAIT
from portal.cockpit import versions
from portal.cockpit.decided import decided
from portal.decisions import placements
from portal.models import Cycle, Eviction, Placement, SchedulerConfiguration
from queues.projection import set_shares
from queues.sampling import Sampler
from scheduler.framework.explain import Verdict
from scheduler.framework.record import CycleRecord, QueueShare
from scheduler.source import ConfState

IDLE = timedelta(seconds=10)
KEEP = 5000
"""Rows of cycles that are kept."""
KEEP_EVICTIONS = 50_000
"""Rows of the eviction ledger that are kept."""
KEEP_PLACEMENTS = 200_000
"""Rows of who was given nodes that are kept."""
TRIES = 100
"""Writes for which a gang that the mirror has not shown yet is waited for."""
PAUSE = 0.25
"""Wall seconds between two writes, so that a fast scheduler is written in bulk."""


class Sink:
    """Callable with a CycleRecord from the scheduler's thread; `run` writes, in another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._records: list[CycleRecord] = []
        self._verdicts: dict[str, Verdict | None] = {}
        self._shares: dict[str, QueueShare] = {}
        self._steps: list[CycleRecord] = []
        self._columns: dict[str, dict[str, Any]] = {}
        self._written: dict[str, dict[str, Any]] = {}
        self._patience, self._away = Patience(PAUSE), Away("decisions wait to be written")
        self._sampler = Sampler()
        self._last_cycle: datetime | None = None
        self._conf: ConfState | None = None
        self._nameless: dict[str, int] = {}
        self._first = True
        self._unpruned: dict[type[Cycle | Eviction | Placement], int] = {  # so that it begins with it
            Cycle: KEEP, Eviction: KEEP_EVICTIONS, Placement: KEEP_PLACEMENTS,
        }  # fmt: skip

    def __call__(self, record: CycleRecord) -> None:
        """Take a record; returns at once."""
        with self._lock:
            self._verdicts |= record.verdicts
            if record.queues:
                self._steps.append(record)
            if did_something(record) or not self._records:
                self._records.append(record)
        self._wake.set()

    def configured(self, state: ConfState) -> None:
        """Take the configuration in force; returns at once."""
        with self._lock:
            self._conf = state
        self._wake.set()

    def run(self, stop: threading.Event) -> None:
        """Write until told to stop, and once more then; what the database refuses now is tried again."""
        try:
            while not stop.is_set():
                if self._wake.wait(0.5):
                    self._wake.clear()
                    stop.wait(PAUSE if self._write_or_keep() else self._patience.next())
            self._write_or_keep()
        finally:
            connection.close()

    def _write_or_keep(self) -> bool:
        """Whether everything is written."""
        try:
            self.write()
            self._away.answered()
        except DatabaseError as error:
            self._away.failed(error)
            self._wake.set()
            return False
        self._patience.reset()
        return True

    def write(self) -> None:
        """Write what is waiting. Raises DatabaseError, and keeps it then."""
        with self._lock:
            records, self._records = self._records, []
            verdicts, self._verdicts = self._verdicts, {}
            steps, self._steps = self._steps, []
            conf, self._conf = self._conf, None
        columns = self._count(steps)
        try:
            if conf is not None:
                _write_configuration(conf)
            late = self._write_verdicts(verdicts)
            if columns != self._written:
                set_shares(columns)
                self._written = columns
            if steps:
                self._sampler.offer(columns, _at(steps[-1]), **_circumstances(steps[-1]))
            with transaction.atomic():
                self._write_evictions(records)
                self._write_placements(records)
                self._write_cycles(records)
        except DatabaseError:
            with self._lock:
                self._records = records + self._records
                self._verdicts = verdicts | self._verdicts
                self._conf = self._conf or conf
            raise
        with self._lock:
            self._verdicts = late | self._verdicts

    def _count(self, steps: list[CycleRecord]) -> dict[str, dict[str, Any]]:
        """Add every step to the running sums; the latest shares as columns."""
        for record in steps:
            if record.queues != self._shares:
                self._shares = record.queues
                self._columns = {name: _columns(share) for name, share in record.queues.items()}
            self._sampler.step(self._columns, _at(record), **_circumstances(record))
        return self._columns

    def _write_verdicts(self, verdicts: dict[str, Verdict | None]) -> dict[str, Verdict | None]:
        """Verdicts onto jobs where they changed; those of gangs that the mirror has not shown yet, to be tried again."""
        owners = _owners(verdicts)
        new = {owners[key]: verdict for key, verdict in verdicts.items() if owners.get(key)}
        with writing(Job):
            jobs = Job.objects.filter(pk__in=new).only("uid", "phase", "deleted_at", "verdict", "verdict_stage")
            changed = [job for job in jobs if _judge(job, new[job.uid])]
            if self._first:  # what a scheduler before this one left behind
                left = Job.objects.exclude(verdict_stage="").only("uid", "phase", "deleted_at", "verdict", "verdict_stage")
                changed += [job for job in left if job.uid not in new and _judge(job, None)]
                self._first = False
            Job.objects.bulk_update(changed, ["verdict", "verdict_stage"], batch_size=500)
            holds.record(changed, now())
            notify("jobs", (job.uid for job in changed))
        return {key: verdict for key, verdict in verdicts.items() if verdict is not None and key not in owners}

    def _write_evictions(self, records: list[CycleRecord]) -> None:
        """Rows of the ledger."""
        self._name_parties()
        found = [(record, each) for record in records for each in record.evictions]
        if not found:
            return
        keys = {each.victim_job for _, each in found} | {each.preemptor for _, each in found} - {""}
        jobs = _owners(keys)
        self._nameless |= dict.fromkeys(keys - jobs.keys(), TRIES)
        rows = [
            Eviction(
                at=_at(record),
                cycle=record.number,
                victim_job_uid=jobs.get(each.victim_job, ""),
                preemptor_uid=jobs.get(each.preemptor, ""),
                **asdict(each),
            )
            for record, each in found
        ]
        Eviction.objects.bulk_create(rows, batch_size=500)
        notify("jobs", {uid for row in rows for uid in (row.victim_job_uid, row.preemptor_uid)} - {""})
        self._prune(Eviction, len(rows), KEEP_EVICTIONS)

    def _write_placements(self, records: list[CycleRecord]) -> None:
        """Who was given nodes, cycle by cycle."""
        keys = {key for record in records for key in record.served}
        if not keys:
            return
        jobs = _owners(keys)
        self._nameless |= dict.fromkeys(keys - jobs.keys(), TRIES)
        rows = placements.rows(records, jobs)
        Placement.objects.bulk_create(rows, batch_size=500)
        self._prune(Placement, len(rows), KEEP_PLACEMENTS)

    def _name_parties(self) -> None:
        """Give rows of the ledger their jobs, once the mirror has shown the gangs that were new when they were written."""
        if not self._nameless:
            return
        jobs = _owners(self._nameless)
        for key, uid in jobs.items():
            Eviction.objects.filter(victim_job=key, victim_job_uid="").update(victim_job_uid=uid)
            Eviction.objects.filter(preemptor=key, preemptor_uid="").update(preemptor_uid=uid)
        placements.name(jobs)
        notify("jobs", set(jobs.values()) - {""})
        self._nameless = {key: left - 1 for key, left in self._nameless.items() if key not in jobs and left}

    def _write_cycles(self, records: list[CycleRecord]) -> None:
        kept = []
        for record in records:
            if did_something(record) or self._last_cycle is None or _at(record) - self._last_cycle >= IDLE:
                kept.append(_cycle(record))
                self._last_cycle = _at(record)
        Cycle.objects.bulk_create(kept, batch_size=500)
        notify("scheduler", (str(cycle.number) for cycle in kept))
        self._prune(Cycle, len(kept), KEEP)

    def _prune(self, model: type[Cycle | Eviction | Placement], added: int, keep: int) -> None:
        """Delete the oldest rows beyond those that are kept; looked at only now and then, since it reads past all of these."""
        self._unpruned[model] += added
        if self._unpruned[model] < keep // 10:
            return
        oldest = model._default_manager.order_by("-pk").values_list("pk", flat=True)[keep : keep + 1]
        if oldest:
            model._default_manager.filter(pk__lte=oldest[0]).delete()
        self._unpruned[model] = 0


def _write_configuration(state: ConfState) -> None:
    values = {
        "source": state.source,
        "watched": state.watched,
        "text": state.text,
        "since": datetime.fromtimestamp(state.since, UTC),
        "broken": state.broken,
        "faults": [asdict(fault) for fault in state.faults],
    }
    SchedulerConfiguration.objects.update_or_create(pk=1, defaults=values)
    versions.seen(state.text, values["since"], state.source, newer=bool(state.faults))
    notify("configuration", ("1",))


def did_something(record: CycleRecord) -> bool:
    """Whether a cycle is worth keeping for itself."""
    return bool(record.bound or record.evicted or record.verdicts)


def _owners(keys: Any) -> dict[str, str]:
    """The job of each gang by its key (empty: bare pods); gangs that are not projected yet are absent."""
    names = {key.partition("/")[2] for key in keys}
    rows = PodGroup.objects.filter(name__in=names).order_by("-deleted_at").values_list("namespace", "name", "job_uid")
    return {f"{namespace}/{name}": job_uid for namespace, name, job_uid in rows}


def _judge(job: Job, verdict: Verdict | None) -> bool:
    """Set a job's verdict; whether that changed it. A job that waits for nothing any more keeps none."""
    if verdict is None and is_held(job.verdict):
        return False  # its controller says so, and takes it back
    waits = verdict is not None and (job.deleted_at is None and job.phase in MAY_WAIT)
    new = verdict.as_dict() if waits and verdict is not None else None
    if job.verdict == new:
        return False
    job.verdict, job.verdict_stage = new, str(new["stage"]) if new else ""
    return True


def _columns(share: QueueShare) -> dict[str, Any]:
    values = asdict(share)
    del values["limit"]  # a page shows the limits that somebody wrote
    return {("share" if name == "share" else f"share_{name}"): value for name, value in values.items()}


def _cycle(record: CycleRecord) -> Cycle:
    return Cycle(
        number=record.number,
        at=_at(record),
        milliseconds=record.milliseconds,
        actions=record.actions,
        considered=record.considered,
        bound=record.bound,
        evicted=record.evicted,
        hooks=_hooks(record),
        opening=record.opening,
        waited=None if record.waited is None else record.waited * 1000,
        decisions=decided(record),
    )


def _hooks(record: CycleRecord) -> dict[str, dict[str, float]]:
    """Milliseconds by action and plugin, with the opening and closing of plugins."""
    opened = {name: spent for name, (spent, _) in record.plugins.items()}
    closed = {name: spent for name, (_, spent) in record.plugins.items()}
    return {"open": opened, **record.hooks, "close": closed}


def _circumstances(record: CycleRecord) -> dict[str, Any]:
    """What a sample keeps besides the shares."""
    return {"capacity": record.capacity, "inner": record.inner, "cycle": record.number}


def _at(record: CycleRecord) -> datetime:
    return datetime.fromtimestamp(record.at, UTC)
