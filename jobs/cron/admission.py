"""What a CronJob is given and refused, on create and on update: everything in it may change."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.admission import Request
from cluster.errors import FieldError
from cluster.names import SUBDOMAIN_ADVICE, is_dns_subdomain
from cluster.said import told
from cluster.validation import Faults, check_shape, prune
from jobs.cron.schedule import Schedule, ScheduleError, zone
from jobs.cron.shapes import CronShape
from jobs.jobspec import check_job_spec
from jobs.manifest.template import check_labels

LONGEST_NAME = 52
"""What the jobs' names add, a dash and ten digits, still fits into a label."""
_DEFAULTS = {
    "concurrencyPolicy": "Allow",
    "suspend": False,
    "successfulJobsHistoryLimit": 3,
    "failedJobsHistoryLimit": 1,
}


@dataclass(frozen=True)
class CronRules:
    """CronJobs: a schedule that can be read and comes some day, a zone that exists, a sound job."""

    scheduler: str

    def default(self, request: Request) -> None:
        """What Volcano's own schema fills in."""
        spec = request.obj.get("spec")
        if isinstance(spec, dict):
            for field, value in _DEFAULTS.items():
                if spec.get(field) is None:
                    spec[field] = value

    def validate(self, request: Request) -> list[FieldError]:
        """Every fault."""
        if request.operation == "DELETE":
            return []
        shape = check_shape(CronShape, request.obj)
        cron = prune(request.obj, shape)
        found = Faults()
        meta, spec = cron.get("metadata") or {}, cron.get("spec") or {}
        check_labels(meta, "/metadata", found)
        name = meta.get("name") or (meta.get("generateName") or "") + "xxxxx"
        if not is_dns_subdomain(name) or len(name) > LONGEST_NAME:
            field = "name" if meta.get("name") or not meta.get("generateName") else "generateName"
            said = f"{name!r} is no cron job's name: {SUBDOMAIN_ADVICE.replace('253', str(LONGEST_NAME))}"
            found.add(f"/metadata/{field}", said, "format")
        _check_schedule(spec, found)
        template = spec.get("jobTemplate") or {}
        check_labels(template.get("metadata") or {}, "/spec/jobTemplate/metadata", found)
        if isinstance(template.get("spec"), dict):
            # A bad name was told above; the job's rules are asked about one that is none.
            sound, digits = is_dns_subdomain(name) and len(name) <= LONGEST_NAME, 10 if _is_quick(spec) else 8
            probe = f"{name if sound else 'x'}-{'0' * digits}"
            where = "/spec/jobTemplate/spec"
            found.extend(check_job_spec(template["spec"], probe, request.reader, self.scheduler, where, "/metadata/name"))
        return Faults(shape).with_apart(found)


def _is_quick(spec: dict[str, object]) -> bool:
    """Whether runs come more often than once a minute, so that their names count seconds."""
    try:
        period = Schedule(str(spec.get("schedule") or "")).period
    except ScheduleError:
        return False
    return period is not None and period < 60


def _check_schedule(spec: dict[str, object], faults: Faults) -> None:
    time_zone, text = spec.get("timeZone"), spec.get("schedule")
    try:
        zone(str(time_zone) if time_zone is not None else None)
    except ScheduleError as error:
        faults.add("/spec/timeZone", told(error), "format")
    if text is not None:
        try:
            Schedule(str(text))
        except ScheduleError as error:
            faults.add("/spec/schedule", told(error), "format")
