"""The CronJob controller: makes the job of each time that its schedule names, and clears the old ones away.

When it must look again follows from the object and its jobs alone, so a restart forgets no time. A job's name follows from the
time that it is for, and the job is there before the status says so: a pass that breaks off anywhere makes no job twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cluster import objects
from cluster.errors import AlreadyExists, ApiError, Conflict, NotFound
from cluster.informer import Change, IndexFunction
from cluster.kinds import CRON_JOB, JOB, Kind
from cluster.port import Obj
from cluster.said import said, told
from jobs import keys
from jobs.controller.base import Context
from jobs.controller.events import EventRecorder
from jobs.controller.status import difference
from jobs.cron import runs
from jobs.cron.schedule import Schedule, ScheduleError, zone
from jobs.keys import FIELD_MANAGER
from jobs.roles import told_phase


class _Refused(ApiError):
    """A job could not be made. It is told on the cron job; the log needs no traceback of it."""


def _cron_of_job(job: Obj) -> Iterator[str]:
    if owner := runs.owning_cron(job):
        yield owner["uid"]


class CronController:
    """Reconciles CronJobs; keys are `namespace/name`."""

    name = "cron"
    kinds: tuple[Kind, ...] = (CRON_JOB, JOB)
    indexes: dict[tuple[Kind, str], IndexFunction] = {(JOB, "cron"): _cron_of_job}  # noqa: RUF012

    def __init__(self, context: Context, events: EventRecorder) -> None:
        self._context, self._events = context, events

    def start(self) -> None:
        """Nothing is needed beforehand."""

    def keys(self, change: Change) -> Iterable[str]:
        """The cron job itself, or the one that a job belongs to."""
        obj = change.object
        if change.kind == CRON_JOB:
            return [objects.key(obj)]
        if change.kind == JOB and (owner := runs.owning_cron(obj)):
            return [f"{objects.namespace(obj)}/{owner['name']}"]
        return ()

    def reconcile(self, key: str) -> float | None:
        """One pass: what became of the runs, old ones go, then the run that is due. Seconds until the next one."""
        cron = self._context.informer.get(CRON_JOB, key)
        if cron is None or objects.is_deleting(cron):
            return None
        jobs = self._context.informer.by(JOB, "cron", objects.uid(cron))
        cron = self._write(cron, jobs)
        jobs = self._clear_away(cron, jobs)
        if cron["spec"].get("suspend"):
            return None
        schedule = self._schedule(cron)
        if schedule is None:
            return None
        now = self._context.clock.now()
        cron = self._noted(cron, now)
        due = self._due(cron, schedule, jobs, now)
        if due is not None:
            self._run(cron, schedule, due, jobs)
        following = schedule.next(now) if schedule.period is None else self._next_period(cron, schedule, due, now)
        return None if following is None else max(following - now, 0.0)

    def failed(self, key: str, error: Exception, failures: int) -> None:
        """Tell it on the cron job."""
        cron = self._context.informer.get(CRON_JOB, key)
        if cron is not None and not isinstance(error, Conflict):
            self._events.warning(cron, "FailedCreate" if isinstance(error, _Refused) else "CronJobError", told(error))

    def _schedule(self, cron: Obj) -> Schedule | None:
        """The schedule; one that cannot be read is told, and nothing runs until it is mended."""
        try:
            zone(cron["spec"].get("timeZone"))
        except ScheduleError as error:
            self._events.warning(cron, "InvalidTimeZone", told(error))
            return None
        try:
            return runs.schedule_of(cron)
        except ScheduleError as error:
            self._events.warning(cron, "UnParseableCronJobSchedule", told(error))
            return None

    def _due(self, cron: Obj, schedule: Schedule, jobs: list[Obj], now: float) -> float | None:
        """The latest time that has passed and has no job yet; None when there is none, or it is too late for it."""
        begin = runs.begins(cron, jobs)
        missed = schedule.missed(begin, now)
        if missed.latest is None:
            return None
        deadline = cron["spec"].get("startingDeadlineSeconds")
        if deadline is not None and int(now) - missed.latest >= max(int(deadline), 1):
            self._events.warning(
                cron,
                "MissSchedule",
                said("the run of %(latest)s was missed: it is too late for it", latest=objects.stamp(missed.latest)),
            )
            return None
        if missed.many and (deadline is None or schedule.missed(max(begin, now - int(deadline)), now).many):
            message = said(
                "more than 100 runs were missed: only the latest is made up for "
                "(startingDeadlineSeconds says how late a run may begin)"
            )
            self._events.warning(cron, "TooManyMissedTimes", message)
        return missed.latest

    def _next_period(self, cron: Obj, schedule: Schedule, due: float | None, now: float) -> float | None:
        """Periods are counted from the last run, so the next one is by that and not by now."""
        begin = due if due is not None else runs.begins(cron, self._context.informer.by(JOB, "cron", objects.uid(cron)))
        latest = schedule.missed(begin, now).latest
        return schedule.next(begin if latest is None else latest)

    def _noted(self, cron: Obj, now: float) -> Obj:
        """Keep on the cron job since when it has its schedule: what a new one would have had before was not missed."""
        timing = f"{cron['spec'].get('timeZone') or 'UTC'} {cron['spec'].get('schedule')}"
        noted = objects.annotations(cron).get(keys.SCHEDULE_SINCE, "")
        if noted.partition(" ")[2] == timing:
            return cron
        since = objects.stamp(now) if noted else cron["metadata"]["creationTimestamp"]
        meta = cron["metadata"]
        body = {"metadata": {"uid": meta["uid"], "annotations": {keys.SCHEDULE_SINCE: f"{since} {timing}"}}}
        patched = self._context.cluster.patch(CRON_JOB, meta["name"], meta["namespace"], body, field_manager=FIELD_MANAGER)
        self._context.informer.observe(CRON_JOB, patched)
        return patched

    def _run(self, cron: Obj, schedule: Schedule, slot: float, jobs: list[Obj]) -> None:
        """Make the job of one time, as far as others that still run allow it."""
        name = runs.run_name(cron, schedule, slot)
        running, policy = runs.active(jobs), cron["spec"].get("concurrencyPolicy") or "Allow"
        if running and policy == "Forbid":
            names = ", ".join(objects.name(job) for job in running)
            self._events.warning(
                cron, "ForbidConcurrent", said("%(name)s is not made while %(others)s runs", name=name, others=names)
            )
            return
        if policy == "Replace":
            self._replace(cron, running, name)
        made = self._make(cron, name, slot)
        if made is not None:
            jobs = [*(job for job in jobs if policy != "Replace" or job not in running), made]
        self._write(cron, jobs, slot)

    def _replace(self, cron: Obj, running: list[Obj], name: str) -> None:
        if running:
            self._events.normal(
                cron,
                "ReplaceConcurrent",
                said("%(others)s gives way to %(name)s", others=", ".join(objects.name(job) for job in running), name=name),
            )
        for job in running:
            self._delete(cron, job)

    def _make(self, cron: Obj, name: str, slot: float) -> Obj | None:
        """The job of one time. None when one of its name is somebody else's, which is left alone."""
        cluster, informer = self._context.cluster, self._context.informer
        job = runs.build_run(cron, name, slot)
        try:
            made = cluster.create(JOB, job, field_manager=FIELD_MANAGER)
        except AlreadyExists:
            there = cluster.get(JOB, name, objects.namespace(cron))
            if (runs.owning_cron(there) or {}).get("uid") != objects.uid(cron):
                self._events.warning(
                    cron, "ForeignJob", said("job %(name)s is there already and not this cron job's; it is left alone", name=name)
                )
                return None
            made = there
        except ApiError as error:
            raise _Refused(said("job %(name)s is refused: %(error)s", name=name, error=error)) from error
        else:
            self._events.normal(cron, "SuccessfulCreate", said("created job %(name)s", name=name))
        informer.observe(JOB, made)
        return made

    def _write(self, cron: Obj, jobs: list[Obj], slot: float | None = None) -> Obj:
        """Write what the jobs tell into the status; `slot` is a time that was just done with."""
        old = cron.get("status") or {}
        last = max((known for known in (runs.last_run(cron, jobs), slot) if known is not None), default=None)
        status = {"active": [runs.reference(job) for job in runs.active(jobs)]}
        if last is not None:
            status["lastScheduleTime"] = objects.stamp(last)
        if (success := runs.last_success(cron, jobs)) is not None:
            status["lastSuccessfulTime"] = success
        patch = difference({field: old[field] for field in status if field in old}, status)
        if not patch or (patch == {"active": []} and "active" not in old):
            return cron
        meta = cron["metadata"]
        written = self._context.cluster.patch_status(CRON_JOB, meta["name"], meta["namespace"], patch, uid=meta["uid"])
        self._context.informer.observe(CRON_JOB, written)
        self._tell_ended(cron, old.get("active") or [], jobs)
        return written

    def _tell_ended(self, cron: Obj, were: list[Obj], jobs: list[Obj]) -> None:
        """Say of each run that left the list how it ended."""
        there = {objects.uid(job): job for job in jobs}
        for reference in were:
            job = there.get(reference.get("uid", ""))
            if job is None:
                self._events.warning(cron, "StaleReference", said("job %(name)s is gone", name=reference.get("name")))
            elif told_phase(job) in runs.FINISHED:
                self._events.normal(
                    cron, "SawCompletedJob", said("job %(job)s ended: %(phase)s", job=objects.name(job), phase=told_phase(job))
                )

    def _clear_away(self, cron: Obj, jobs: list[Obj]) -> list[Obj]:
        """Delete the finished jobs beyond the history limits; those that stay."""
        gone = [job for job in runs.superfluous(cron, jobs) if not objects.is_deleting(job)]
        for job in gone:
            self._delete(cron, job)
        return [job for job in jobs if job not in gone]

    def _delete(self, cron: Obj, job: Obj) -> None:
        cluster, informer = self._context.cluster, self._context.informer
        try:
            cluster.delete(JOB, objects.name(job), objects.namespace(job), uid=objects.uid(job))
        except NotFound:
            informer.forget(JOB, job)
        except ApiError as error:
            self._events.warning(
                cron, "FailedDelete", said("job %(job)s could not be deleted: %(error)s", job=objects.name(job), error=error)
            )
            raise
        else:
            self._events.normal(cron, "SuccessfulDelete", said("deleted job %(job)s", job=objects.name(job)))
