"""The JobFlow controller: makes each part's job when what it waits for is there, and writes down how far the flow is.

A job's name follows from the flow and the part, so that a pass that is done twice, or breaks off anywhere, makes no job twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cluster import objects
from cluster.errors import AlreadyExists, ApiError, Conflict, NotFound
from cluster.informer import Change, IndexFunction
from cluster.kinds import JOB, JOB_FLOW, JOB_TEMPLATE, POD, Kind
from cluster.port import Obj
from cluster.said import said, told
from jobs.controller.base import Context
from jobs.controller.events import EventRecorder
from jobs.controller.status import difference
from jobs.flows import probes
from jobs.flows.parts import (
    RECORDED,
    build_job,
    job_name,
    owning_flow,
    parts_of,
    probe_of,
    targets_of,
    template_key,
)
from jobs.flows.patching import PatchError
from jobs.flows.status import BROKEN, ENDED, FlowPhase, is_done, new_status, phase_of, recorded
from jobs.keys import FIELD_MANAGER
from jobs.roles import told_phase


class _Waits(ApiError):
    """A part's job cannot be made yet. It is told on the flow; the log needs no traceback of it."""


def _flow_of_job(job: Obj) -> Iterator[str]:
    if owner := owning_flow(job):
        yield owner["uid"]
        yield f"{objects.namespace(job)}/{owner['name']}"


def _templates(flow: Obj) -> Iterator[str]:
    yield from {template_key(flow, part): None for part in parts_of(flow)}


def _children(flow: Obj) -> Iterator[str]:
    names = (job_name(objects.name(flow), part["name"]) for part in parts_of(flow))
    yield from {f"{objects.namespace(flow)}/{name}": None for name in names}


class FlowController:
    """Reconciles JobFlows; keys are `namespace/name`."""

    name = "flow"
    kinds: tuple[Kind, ...] = (JOB_FLOW, JOB_TEMPLATE, JOB, POD)
    indexes: dict[tuple[Kind, str], IndexFunction] = {  # noqa: RUF012
        (JOB, "flow"): _flow_of_job,
        (JOB_FLOW, "template"): _templates,
        (JOB_FLOW, "child"): _children,
    }

    def __init__(self, context: Context, events: EventRecorder, prober: probes.Prober | None = None) -> None:
        self._context, self._events = context, events
        self._prober = prober or probes.EmbeddedProber()

    def start(self) -> None:
        """Nothing is needed beforehand."""

    def keys(self, change: Change) -> Iterable[str]:
        """The flow itself; the one that a job belongs to, or wants the name of; those that are made from a template."""
        obj, informer = change.object, self._context.informer
        if change.kind == JOB_FLOW:
            return [objects.key(obj)]
        if change.kind == JOB_TEMPLATE:
            return [objects.key(flow) for flow in informer.by(JOB_FLOW, "template", objects.key(obj))]
        if change.kind != JOB:
            return ()
        if owner := owning_flow(obj):
            return [f"{objects.namespace(obj)}/{owner['name']}"]
        if change.new is None:
            return [objects.key(flow) for flow in informer.by(JOB_FLOW, "child", objects.key(obj))]
        return ()

    def reconcile(self, key: str) -> float | None:
        """One pass: what the jobs are at, then the jobs that may start now, then what that means for the flow."""
        flow = self._context.informer.get(JOB_FLOW, key)
        if flow is None:
            self._let_go(self._context.informer.by(JOB, "flow", key))
            return None
        jobs = self._jobs(flow)
        if objects.is_deleting(flow):
            self._write(flow, new_status(flow, jobs) | {"state": {"phase": str(FlowPhase.TERMINATING)}})
            self._let_go(jobs.values())
            return None
        if phase_of(flow) is FlowPhase.SUCCEED and flow["spec"].get("jobRetainPolicy") == "delete":
            self._delete_jobs(jobs.values())
            return None
        flow = self._write(flow, new_status(flow, jobs))
        self._let_go(jobs.values())
        if phase_of(flow) in ENDED:
            return self._end(flow)
        return self._start_parts(flow, jobs)

    def failed(self, key: str, error: Exception, failures: int) -> None:
        """Tell it on the flow."""
        flow = self._context.informer.get(JOB_FLOW, key)
        if flow is not None and not isinstance(error, Conflict):
            self._events.warning(flow, "FailedCreate" if isinstance(error, _Waits) else "FlowError", told(error))

    def _jobs(self, flow: Obj) -> dict[str, Obj]:
        found = self._context.informer.by(JOB, "flow", objects.uid(flow))
        return {objects.name(job): job for job in found}

    def _start_parts(self, flow: Obj, jobs: dict[str, Obj]) -> float | None:
        """Make every job whose time has come; one that cannot be made does not stop the others."""
        refused, asked, told = [], False, recorded(flow)
        for part in parts_of(flow):
            name = job_name(objects.name(flow), part["name"])
            if name in jobs or is_done(name, jobs, told):
                continue
            if not self._may_start(flow, part, jobs, told):
                asked = asked or bool(probe_of(part))
                continue
            try:
                self._make(flow, part)
            except (PatchError, ApiError) as error:
                refused.append(said("%(name)s: %(error)s", name=name, error=error))
        if refused:
            raise _Waits(said("%(refused)s", refused=tuple(refused)))
        return probes.AGAIN if asked else None

    def _may_start(self, flow: Obj, part: Obj, jobs: dict[str, Obj], told: dict[str, Obj]) -> bool:
        """Whether all that a part waits for is done; with a probe: is done, or answers."""
        probe = probe_of(part)
        for target in targets_of(part):
            name = job_name(objects.name(flow), target)
            if is_done(name, jobs, told):
                continue
            job = jobs.get(name)
            if job is None or not probe or told_phase(job) not in ("Running", "Completing"):
                return False
            if not probes.holds(probe, job, self._context.informer.by(POD, "job", objects.uid(job)), self._prober):
                return False
        return True

    def _make(self, flow: Obj, part: Obj) -> None:
        """Make one job. One of the same name that is not the flow's is left alone. Raises PatchError, ApiError."""
        informer, cluster = self._context.informer, self._context.cluster
        template = informer.get(JOB_TEMPLATE, template_key(flow, part))
        if template is None:
            raise _Waits(
                said(
                    "there is no JobTemplate %(name)r in namespace %(namespace)r any more",
                    name=part["name"],
                    namespace=objects.namespace(flow),
                )
            )
        job = build_job(flow, part, template)
        try:
            made = cluster.create(JOB, job, field_manager=FIELD_MANAGER)
        except AlreadyExists:
            there = cluster.get(JOB, objects.name(job), objects.namespace(job))
            if (owning_flow(there) or {}).get("uid") != objects.uid(flow):
                raise _Waits(said("a job of this name is there already and not the flow's; it is left alone")) from None
            informer.observe(JOB, there)
            return
        informer.observe(JOB, made)
        self._events.normal(
            flow, "Created", said("created job %(job)s from JobTemplate %(name)s", job=objects.name(made), name=part["name"])
        )

    def _write(self, flow: Obj, status: Obj) -> Obj:
        """Write what changed of the status. Raises Conflict when somebody else was quicker."""
        old = flow.get("status") or {}
        if not (patch := difference(old, status)):
            return flow
        meta = flow["metadata"]
        written = self._context.cluster.patch_status(
            JOB_FLOW, meta["name"], meta["namespace"], patch, resource_version=meta["resourceVersion"], uid=meta["uid"]
        )
        self._context.informer.observe(JOB_FLOW, written)
        was, now = phase_of(flow), phase_of(written)
        if was != now:
            self._tell(written, now)
        return written

    def _tell(self, flow: Obj, phase: FlowPhase) -> None:
        if phase is FlowPhase.FAILED:
            bad = [f"{name} is {entry['state']}" for name, entry in recorded(flow).items() if entry["state"] in BROKEN]
            self._events.warning(flow, "FlowFailed", said("%(jobs)s: no more jobs are started", jobs=", ".join(bad)))
        elif phase is not FlowPhase.PENDING:
            self._events.normal(flow, f"Flow{phase}", said("the flow is %(phase)s", phase=phase))

    def _end(self, flow: Obj) -> float | None:
        return 0.0 if phase_of(flow) is FlowPhase.SUCCEED and flow["spec"].get("jobRetainPolicy") == "delete" else None

    def _delete_jobs(self, jobs: Iterable[Obj]) -> None:
        """What `jobRetainPolicy: delete` asks for, once all has gone well."""
        for job in jobs:
            if not objects.is_deleting(job):
                try:
                    self._context.cluster.delete(JOB, objects.name(job), objects.namespace(job), uid=objects.uid(job))
                except NotFound:
                    self._context.informer.forget(JOB, job)
        self._let_go(jobs)

    def _let_go(self, jobs: Iterable[Obj]) -> None:
        """Let jobs go whose end is written down, or that nobody will write down."""
        for job in jobs:
            kept = job["metadata"].get("finalizers") or []
            if not objects.is_deleting(job) or RECORDED not in kept:
                continue
            rest = {"metadata": {"finalizers": [name for name in kept if name != RECORDED], "uid": objects.uid(job)}}
            try:
                self._context.cluster.patch(JOB, objects.name(job), objects.namespace(job), rest, field_manager=FIELD_MANAGER)
            except NotFound:
                self._context.informer.forget(JOB, job)
