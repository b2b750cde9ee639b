"""Scenarios of flows and cron jobs."""

from __future__ import annotations

import textwrap

from tests.portal.cases import seen

TEMPLATES = "{nodes: [{name: n1, cpu: 4, memory: 8Gi}], templates: [{name: a, tasks: {w: {replicas: 1, cpu: 1}}}, "
TEMPLATES += "{name: b, tasks: {w: {replicas: 1, cpu: 1}}}]}"


def test_a_flow_is_played_to_its_end():
    steps = """
    - submit_flow: {name: f, flows: [{name: a}, {name: b, dependsOn: [a]}], retain: retain}
    - schedule: until-quiet
    - check: {flow_phase: {f: Running}, flow_jobs: {f: [f-a]}, not_created: [f-b], running: {f-a: 1}}
    - finish_all: {flow: f, exit: 0}
    - schedule: until-quiet
    - finish_all: {flow: f, exit: 0}
    - schedule: until-quiet
    """
    assert seen(textwrap.dedent(steps), "- {flow_phase: {f: Succeed}, flow_jobs: {f: [f-a, f-b]}}", TEMPLATES) == ""


def test_a_flow_may_be_refused():
    steps = "- submit_flow: {name: f, flows: [{name: nowhere}]}"
    assert seen(steps, "- {refused: [f], message_names: [nowhere]}", TEMPLATES) == ""


def test_a_cron_job_runs_by_the_clock_and_a_lost_field_doubles_nothing():
    steps = """
    - submit_cron: {name: c, schedule: '0 * * * *', concurrency: Forbid, job: {tasks: {w: {replicas: 1, cpu: 1}}}}
    - clock: {to: '01:30'}
    - check: {jobs_of: {c: 1}}
    - lose: {cron: c, field: lastScheduleTime}
    - lose: {cron: c, field: active}
    - restart_controller: true
    - settle: true
    - check: {jobs_of: {c: 1}}
    - clock: {to: '04:30'}
    """
    assert seen(textwrap.dedent(steps), "- jobs_of: {c: 1}", TEMPLATES) == ""
    allowed = steps.replace("Forbid", "Allow")
    assert seen(textwrap.dedent(allowed), "- jobs_of: {c: 4}", TEMPLATES) == ""
