"""A job's spec inside another object (a template, a flow's part, a cron job), held to the same rules as a Job's own."""

from __future__ import annotations

import copy
from typing import Any

from cluster.errors import FieldError
from cluster.kinds import JOB
from cluster.port import Reader
from jobs import manifest


def check_job_spec(spec: Any, name: str, reader: Reader, scheduler: str, where: str, named: str) -> list[FieldError]:
    """The faults of the Job `name` with this spec. `where` is the place of the spec, `named` of what its name follows from.

    A queue that is closed is no fault: it may be open by the time that the job is made.
    """
    job = {"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": {"name": name}, "spec": copy.deepcopy(spec)}
    manifest.default(job, scheduler)
    found = []
    for fault in manifest.validate(job, reader):
        if fault.pointer == "/spec/queue" and fault.code == "closed":
            continue
        inside = fault.pointer.startswith("/spec")
        found.append(FieldError(where + fault.pointer.removeprefix("/spec") if inside else named, fault.message, fault.code))
    return found
