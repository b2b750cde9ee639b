"""Flows and cron jobs: how far they are, and the jobs that they made."""

from __future__ import annotations

from cluster.kinds import JOB_FLOW
from portal.scenario.expect.base import check, compare, sets, status
from portal.scenario.world import World


@check
def flow_phase(world: World, value: dict[str, str]) -> list[str]:
    """The phase of a flow."""
    return compare("phase of flow", value, lambda name: (status(world, JOB_FLOW, name).get("state") or {}).get("phase", ""))


@check
def flow_jobs(world: World, value: dict[str, list[str]]) -> list[str]:
    """Jobs that exist and that the flow lists."""

    def listed(name: str) -> set[str]:
        told = {entry["name"] for entry in status(world, JOB_FLOW, name).get("jobStatusList") or ()}
        return told.intersection(world.jobs_of_flow(name))

    return sets("jobs of flow", value, listed)


@check
def jobs_of(world: World, value: dict[str, int]) -> list[str]:
    """Jobs ever made by a cron job."""
    return compare("jobs of cron", value, lambda name: len(world.history.made_by_cron[name]))
