"""What the server answers with, as types. A row has at least these keys; newer servers may add some."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

Manifest = dict[str, Any]
"""An object as Kubernetes writes it."""
Units = dict[str, int]
"""Amounts by resource, in smallest units: milli-CPU, bytes, milli-units of everything else but pods."""


class About(TypedDict):
    """Which Basalt answers, for whom, and what time it is in its cluster."""

    version: str
    volcano_api: str
    cluster: str
    user: str
    is_staff: bool
    now: str


class Token(TypedDict):
    """What a sign-in gives."""

    token: str
    expiry: str | None


class Verdict(TypedDict, total=False):
    """Why a job waits, as data."""

    stage: str
    code: str
    resource: str
    asked: int
    free: int
    short: int
    limit: int
    needed: int
    placeable: int
    nodes: int
    queue: str
    task: str
    rejected: dict[str, int]


class PodRow(TypedDict):
    """A pod. `word`, `ready` and `containers` are kubectl's line of it."""

    uid: str
    namespace: str
    name: str
    task: str
    index: int
    phase: str
    mark: str
    node: str
    gpus: list[int]
    reason: str
    message: str
    exit_code: int | None
    restarts: int
    restarted_at: str | None
    containers: int
    ready: int
    word: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    deleted_at: str | None
    job_uid: NotRequired[str]
    queue: NotRequired[str]
    manifest: NotRequired[Manifest | None]


class EventRow(TypedDict):
    """What happened to something."""

    uid: str
    namespace: str
    about_kind: str
    about_name: str
    about_uid: str
    type: str
    reason: str
    message: str
    count: int
    source: str
    first_seen: str
    last_seen: str


class TaskRow(TypedDict):
    """A role of a job; `counts` are its pods by phase."""

    name: str
    replicas: int
    min_available: int
    requests: Units
    counts: dict[str, int]


class ChangeRow(TypedDict):
    """A step of a job's life."""

    phase: str
    group_phase: str
    at: str


class JobRow(TypedDict):
    """A job. What only one job by itself has is not required."""

    uid: str
    namespace: str
    name: str
    queue: str
    owner: str
    phase: str
    group_phase: str
    mark: str
    phase_since: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    replicas: int
    min_available: int
    pending: int
    running: int
    succeeded: int
    failed: int
    unknown: NotRequired[int]
    labels: NotRequired[dict[str, str]]
    gpus: int
    gpu_model: str
    cpu_milli: int
    memory_bytes: int
    priority_class: str
    retry_count: int
    max_retry: int
    verdict: Verdict | None
    why: dict[str, str]
    manifest: NotRequired[Manifest]
    deleted_at: NotRequired[str | None]
    actions: NotRequired[list[str]]
    tasks: NotRequired[list[TaskRow]]
    pods: NotRequired[list[PodRow]]
    events: NotRequired[list[EventRow]]
    changes: NotRequired[list[ChangeRow]]


class QueueRow(TypedDict):
    """A queue with the scheduler's figures of it."""

    uid: str
    name: str
    parent: str
    state: str
    weight: int
    capability: Units
    guarantee: Units
    share: float
    allocated: Units
    deserved: Units
    request: Units
    inqueue: Units
    groups_pending: int
    groups_inqueue: int
    groups_running: int
    groups_unknown: int
    groups_completed: int
    created_at: str
    resource_version: str
    manifest: NotRequired[Manifest | None]


class NodeRow(TypedDict):
    """A machine; `used` is what its pods ask together."""

    uid: str
    name: str
    ready: bool
    cordoned: bool
    draining: NotRequired[bool]
    rack: str
    spine: str
    gpu_count: int
    gpu_model: str
    gpu_unhealthy: list[int]
    allocatable: Units
    used: Units
    created_at: str
    manifest: NotRequired[Manifest | None]


class GpuCell(TypedDict):
    """One GPU: its state, and who holds it. Of a card that several share it names the first; `parts` has all."""

    index: int
    state: str
    job_uid: str
    job: str
    queue: str
    owner: str


class GpuRow(TypedDict):
    """The GPUs of a machine."""

    node: str
    ready: bool
    cordoned: bool
    gpus: list[GpuCell]


class FlowRow(TypedDict):
    """A flow of jobs."""

    uid: str
    namespace: str
    name: str
    owner: str
    phase: str
    parts: int
    completed: int
    running: int
    failed: int
    created_at: str
    manifest: NotRequired[Manifest]


class TemplateRow(TypedDict):
    """What flows make jobs from."""

    uid: str
    namespace: str
    name: str
    owner: str
    queue: str
    created_at: str
    manifest: NotRequired[Manifest]


class CronRow(TypedDict):
    """A job by the clock."""

    uid: str
    namespace: str
    name: str
    owner: str
    created_at: str
    manifest: NotRequired[Manifest]


class Applied(TypedDict):
    """What became of one document: created, configured or unchanged."""

    document: int
    apiVersion: str
    kind: str
    namespace: str
    name: str
    uid: str
    status: str


class DryRun(TypedDict):
    """What a dry run would have kept."""

    dryRun: bool
    manifest: Manifest


class Way(TypedDict, total=False):
    """One change that would start a waiting job, proved by a run of the scheduler."""

    code: str
    text: dict[str, str]
    effect: dict[str, str]
    patch: Manifest | None
    in_place: bool
    starts: int
    evicted: list[dict[str, str]]
    delayed: list[dict[str, str]]


class Unblock(TypedDict, total=False):
    """What was looked for: `state` is done, working or none."""

    state: str
    milliseconds: int
    tried: int
    ways: list[Way]


class Explanation(TypedDict, total=False):
    """Why a job waits, in words and numbers, and what would unblock it."""

    uid: str
    namespace: str
    name: str
    queue: str
    phase: str
    group_phase: str
    waits: bool
    why: dict[str, str]
    statement: dict[str, str]
    advice: dict[str, str]
    verdict: Verdict | None
    numbers: list[dict[str, Any]]
    stages: list[dict[str, Any]]
    rejected: list[dict[str, Any]]
    snapshot: dict[str, Any] | None
    position: dict[str, Any] | None
    start: dict[str, Any] | None
    unblock: Unblock
