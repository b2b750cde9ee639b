"""The columns of Volcano's tools, with their widths, and the wider ones of our own."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from basalt.client.rows import FlowRow, JobRow, NodeRow, PodRow, QueueRow, TemplateRow
from basalt.terminal.ages import local, since
from basalt.terminal.table import Column
from basalt.terminal.words import in_own_language

JOB_TYPE = "volcano.sh/job-type"


def _namespace(gap: int, title_gap: int | None = None) -> Column[Any]:
    return Column("Namespace", lambda row: row["namespace"], gap=gap, title_gap=title_gap)


def jobs(now: datetime | None = None, *, everywhere: bool = False) -> list[Column[JobRow]]:
    """Of `job list` and `vjobs`; `now` is asked for by the wide ones."""
    return [
        *([_namespace(3)] if everywhere else []),
        Column("Name", lambda row: row["name"]),
        Column("Creation", lambda row: local(row["created_at"]), 15),
        Column("Phase", lambda row: row["phase"], 12),
        Column("JobType", lambda row: (row.get("labels") or {}).get(JOB_TYPE) or "Batch", 12),
        Column("Replicas", lambda row: row["replicas"], 12),
        Column("Min", lambda row: row["min_available"], 6),
        Column("Pending", lambda row: row["pending"], 10),
        Column("Running", lambda row: row["running"], 10),
        Column("Succeeded", lambda row: row["succeeded"], 12),
        Column("Failed", lambda row: row["failed"], 10),
        Column("Unknown", lambda row: row.get("unknown", 0), 12),
        Column("RetryCount", lambda row: row["retry_count"], 10),
        Column("Queue", lambda row: row["queue"], wide=True),
        Column("Owner", lambda row: row["owner"] or "-", wide=True),
        Column("GPUs", lambda row: row["gpus"], wide=True),
        Column("Age", lambda row: since(row["created_at"], now) if now else "", wide=True),
        Column("Why", lambda row: in_own_language(row["why"]), wide=True),
    ]


def queues() -> list[Column[QueueRow]]:
    """Of `queue list` and `queue get`."""
    return [
        *_queue_head(),
        Column("Parent", lambda row: row["parent"], 8),
        *_queue_groups(),
        Column("Completed", lambda row: row["groups_completed"], 8),
        Column("Share", lambda row: f"{row['share']:.0%}", gap=3, wide=True),
        Column("Resource-Version", lambda row: row["resource_version"], wide=True),
    ]


def nodes(now: datetime | None = None) -> list[Column[NodeRow]]:
    """Of `node list`; `now` is asked for by the wide ones."""
    return [
        Column("Name", lambda row: row["name"], gap=3),
        Column("Status", node_status, gap=3),
        Column("GPUs", lambda row: f"{row['used'].get('gpus', 0)}/{row['gpu_count']}" if row["gpu_count"] else "-", gap=3),
        Column("Model", lambda row: row["gpu_model"] or "-", gap=3),
        Column("Pods", lambda row: row["used"].get("pods", 0), gap=3),
        Column("Rack", lambda row: row["rack"] or "-", gap=3),
        Column("Spine", lambda row: row["spine"] or "-", gap=3, wide=True),
        Column("Age", lambda row: since(row["created_at"], now) if now else "", wide=True),
    ]


def node_status(row: NodeRow) -> str:
    """As kubectl says it, and whether its pods are to leave."""
    more = ",Draining" if row.get("draining") else ""
    return ("Ready" if row["ready"] else "NotReady") + (f",SchedulingDisabled{more}" if row["cordoned"] else "")


def vqueues() -> list[Column[QueueRow]]:
    """Of `vqueues`."""
    return [*_queue_head(), *_queue_groups()]


def _queue_head() -> list[Column[QueueRow]]:
    return [
        Column("Name", lambda row: row["name"], 25),
        Column("Weight", lambda row: row["weight"], 8),
        Column("State", lambda row: row["state"], 8),
    ]


def _queue_groups() -> list[Column[QueueRow]]:
    return [
        Column("Inqueue", lambda row: row["groups_inqueue"], 8),
        Column("Pending", lambda row: row["groups_pending"], 8),
        Column("Running", lambda row: row["groups_running"], 8),
        Column("Unknown", lambda row: row["groups_unknown"], 8),
    ]


def pods(now: datetime, *, everywhere: bool = False) -> list[Column[PodRow]]:
    """Of `pod list`."""
    return [
        *([_namespace(8, 2)] if everywhere else []),
        Column("Name", lambda row: row["name"], gap=8, title_gap=2),
        Column("Ready", lambda row: f"{row['ready']}/{row['containers']}" if row["containers"] else "-", gap=8, title_gap=2),
        Column("Status", lambda row: row["word"] or row["phase"], gap=8, title_gap=2),
        Column("Restart", lambda row: restarts(row, now), gap=8, title_gap=2),
        Column("Age", lambda row: since(row["created_at"], now), gap=8, title_gap=2),
        Column("Node", lambda row: row["node"] or "-", wide=True),
        Column("GPUs", lambda row: ",".join(map(str, row["gpus"])) or "-", wide=True),
        Column("Reason", lambda row: row["reason"] or "-", wide=True),
    ]


def restarts(row: PodRow, now: datetime) -> str:
    """How often, and how long ago the last was."""
    number, last = row["restarts"], row.get("restarted_at")
    return f"{number} ({since(last, now)} ago)" if number and last else str(number)


def flows(now: datetime) -> list[Column[FlowRow]]:
    """Of `jobflow list` and `jobflow get`."""
    return [
        Column("Name", lambda row: row["name"], gap=4),
        Column("Namespace", lambda row: row["namespace"], gap=4),
        Column("Phase", lambda row: row["phase"], gap=4),
        Column("Age", lambda row: since(row["created_at"], now), gap=4),
        Column("Jobs", lambda row: f"{row['completed']}/{row['parts']}", wide=True),
        Column("Owner", lambda row: row["owner"] or "-", wide=True),
    ]


def templates() -> list[Column[TemplateRow]]:
    """Of `jobtemplate list` and `jobtemplate get`."""
    return [
        Column("Name", lambda row: row["name"], gap=4),
        Column("Namespace", lambda row: row["namespace"], gap=4),
        Column("Queue", lambda row: row["queue"], wide=True),
        Column("Owner", lambda row: row["owner"] or "-", wide=True),
    ]
