"""Flows and templates as REST lists carry them."""

from __future__ import annotations

from typing import Any

from jobs.flows.choices import FlowState
from jobs.flows.models import JobFlow, JobTemplate

Row = dict[str, Any]


def flow_row(flow: JobFlow) -> Row:
    """One flow."""
    return {
        "uid": flow.uid,
        "namespace": flow.namespace,
        "name": flow.name,
        "owner": flow.owner,
        "phase": flow.phase,
        "mark": FlowState(flow.phase).mark,
        "retain": flow.retain,
        "parts": flow.parts,
        "completed": flow.completed,
        "running": flow.running,
        "failed": flow.failed,
        "created_at": flow.created_at.isoformat(),
        "resource_version": str(flow.resource_version),
    }


def template_row(template: JobTemplate) -> Row:
    """One template."""
    return {
        "uid": template.uid,
        "namespace": template.namespace,
        "name": template.name,
        "owner": template.owner,
        "queue": template.queue,
        "tasks": template.tasks,
        "replicas": template.replicas,
        "jobs": template.jobs,
        "created_at": template.created_at.isoformat(),
        "resource_version": str(template.resource_version),
    }
