"""The pages as people use them: filters without a reload, live changes, a lost line, both themes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from cluster.projection import notify
from jobs.choices import GroupPhase, JobPhase
from jobs.models import Job, PhaseChange, Task
from tests import factories as make
from tests.browser.conftest import NODE_MODULES, Server

AXE = NODE_MODULES / "axe-core" / "axe.min.js"


def change(job: Job, **values: Any) -> None:
    """Move a row as the mirror does, and say so."""
    Job.objects.filter(pk=job.pk).update(**values)
    notify("jobs", [job.uid])


def wait_until_live(page: Page) -> None:
    expect(page.locator("[data-live-link] .ba-dot")).to_have_attribute("data-live", "on")


def test_filtering_changes_the_list_and_the_address_without_a_reload(page: Page, server: Server, sign_in: Callable):
    sign_in()
    make.save([make.job("alpha"), make.job("beta", phase=JobPhase.RUNNING), make.job("gamma", queue="prod")])
    page.goto(f"{server.url}/jobs/")
    page.evaluate("window.here = true")
    page.get_by_role("checkbox", name="Pending").check(force=True)
    expect(page.locator("#results tbody tr")).to_have_count(2)
    assert page.url.endswith("/jobs/?state=pending")
    page.locator("#q").fill("gam")
    expect(page.locator("#results tbody tr")).to_have_count(1)
    expect(page.locator("#results tbody")).to_contain_text("gamma")
    expect(page).to_have_url(f"{server.url}/jobs/?state=pending&q=gam")
    assert page.evaluate("window.here") is True
    page.go_back()
    expect(page.locator("#results tbody tr")).to_have_count(2)
    page.reload()
    expect(page.locator("#results tbody tr")).to_have_count(2)


def test_slash_focuses_the_filter(page: Page, server: Server, sign_in: Callable):
    sign_in()
    page.goto(f"{server.url}/jobs/")
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.goto(server.url)
    page.keyboard.press("/")
    expect(page.locator("[data-search]")).to_be_focused()


def test_a_shown_row_changes_in_place_and_new_ones_wait_behind_a_chip(page: Page, server: Server, sign_in: Callable):
    sign_in()
    job = make.job("alpha", replicas=4)
    make.save([job])
    page.goto(f"{server.url}/jobs/")
    wait_until_live(page)
    change(job, phase=JobPhase.RUNNING, group_phase=GroupPhase.RUNNING, running=3, phase_since=make.now())
    row = page.locator(f'tr[data-uid="{job.uid}"]')
    expect(row.locator(".ba-st")).to_have_attribute("data-st", "running")
    expect(row.locator(".c-st")).to_have_text("Running")
    expect(row.locator(".c-pd .num").first).to_have_text("3/4")
    fresh = make.job("omega", created_at=make.now() + timedelta(seconds=5))
    make.save([fresh])
    notify("jobs", [fresh.uid])
    expect(page.locator("[data-new]")).to_have_text("1 new")
    expect(page.locator("#results tbody tr")).to_have_count(1)
    page.locator("[data-new]").click()
    expect(page.locator("#results tbody tr")).to_have_count(2)


def test_new_jobs_that_the_filter_leaves_out_are_not_announced(page: Page, server: Server, sign_in: Callable):
    sign_in()
    make.save([job := make.job("alpha")])
    page.goto(f"{server.url}/jobs/?state=pending")
    wait_until_live(page)
    fresh = make.job("omega", phase=JobPhase.RUNNING, created_at=make.now() + timedelta(seconds=5))
    make.save([fresh])
    notify("jobs", [fresh.uid])
    change(job, running=1)
    expect(page.locator(f'tr[data-uid="{job.uid}"] .c-pd .num').first).to_have_text("1/2")
    expect(page.locator("[data-new]")).to_be_hidden()


def test_a_job_page_follows_its_job_from_waiting_to_done(page: Page, server: Server, sign_in: Callable):
    sign_in()
    job = make.job("gang", verdict=make.verdict(), replicas=2, created_at=make.now() - timedelta(minutes=2))
    make.save([job])
    Task.objects.create(job=job, name="worker", position=0, replicas=2, min_available=2)
    pods = make.pods(job, 2, phase="Pending")
    make.save(pods)
    PhaseChange.objects.create(job_uid=job.uid, phase="Pending", at=job.created_at)
    page.goto(f"{server.url}/jobs/{job.uid}/")
    wait_until_live(page)
    expect(page.locator("[data-why]")).to_be_visible()
    expect(page.locator(".ba-pod.no")).to_have_count(2)

    change(job, verdict=make.verdict(short=1000, free=7000, placeable=7))
    expect(page.locator('[data-sum="short"]')).to_have_text("1")
    expect(page.locator(".ba-gang .no")).to_have_count(1)

    limit = make.verdict(stage="queue_limit", code="queue.capability", asked=8000, free=0, limit=16_000, short=8000, placeable=0)
    change(job, verdict=limit, verdict_stage="queue_limit")
    expect(page.locator("[data-why]")).to_have_attribute("data-why", "queue.capability")
    expect(page.locator("[data-why] [aria-current=step]")).to_have_text("Queue limit")
    expect(page.locator("[data-why] .say")).to_contain_text("may use 16 GPUs at most")
    expect(page.locator("[data-note]")).to_be_hidden()

    for pod in pods:
        pod.phase, pod.node, pod.gpus = "Running", "n-001", [0, 1]
        pod.save()
    notify(f"job:{job.uid}", [pod.uid for pod in pods])
    PhaseChange.objects.create(job_uid=job.uid, phase="Running", group_phase="Running", at=make.now())
    make.save([make.event(job, "Started", "all <b>pods</b> run")])
    change(job, phase=JobPhase.RUNNING, group_phase=GroupPhase.RUNNING, verdict=None, running=2, phase_since=make.now())
    expect(page.locator("[data-why]")).to_be_hidden()
    expect(page.locator(".ba-head .ba-st")).to_have_attribute("data-st", "running")
    expect(page.locator('.ba-pod[data-st="running"]')).to_have_count(2)
    expect(page.locator(".ba-pod [data-node]").first).to_have_text("n-001")
    expect(page.locator(".ba-pod a").first).to_have_attribute("href", "/nodes/n-001/")
    expect(page.locator("[data-part=legend]")).to_have_text("PendingRunning")
    expect(page.locator("[data-lane=job] .tl-bar")).to_have_count(2)
    expect(page.locator("[data-events]")).to_contain_text("all <b>pods</b> run")
    expect(page.locator("[data-tab-count=events]")).to_have_text("1")
    expect(page.locator("[data-tab-count=pods]")).to_have_text("2")
    expect(page.get_by_role("button", name="Suspend")).to_be_visible()

    end = make.now()
    PhaseChange.objects.create(job_uid=job.uid, phase="Completed", group_phase="Running", at=end)
    change(job, phase=JobPhase.COMPLETED, running=0, succeeded=2, finished_at=end, started_at=end - timedelta(seconds=2))
    expect(page.locator(".ba-head .ba-st")).to_have_text("Completed")
    expect(page.get_by_role("button", name="Suspend")).to_be_hidden()
    expect(page.locator("[data-note]")).to_contain_text("Ran 2 s")


def test_overview_figures_move(page: Page, server: Server, sign_in: Callable):
    sign_in()
    make.fleet()
    make.save([job := make.job("alpha")])
    page.goto(server.url)
    wait_until_live(page)
    figure = page.locator('[data-field="jobs_running"]')
    expect(figure).to_have_text("0")
    expect(page.locator("#h-held")).to_have_text("Why 1 job is pending")
    change(job, phase=JobPhase.RUNNING, running=2)
    expect(figure).to_have_text("1")
    expect(page.locator("#h-held")).to_have_text("Why jobs are pending")
    expect(page.locator("[data-chart] svg")).to_be_visible()


def test_a_lost_line_is_said_and_what_was_missed_is_caught_up(page: Page, server: Server, sign_in: Callable):
    sign_in()
    make.save([job := make.job("alpha")])
    page.goto(f"{server.url}/jobs/")
    wait_until_live(page)
    server.stop()
    expect(page.locator("[data-live-link] .ba-dot")).to_have_attribute("data-live", "off")
    expect(page.locator("[data-live-banner]")).to_be_visible(timeout=8000)
    expect(page.locator("[data-live-banner]")).to_contain_text("Live updates lost at")
    change(job, phase=JobPhase.RUNNING, running=2)
    server.start()
    page.get_by_role("button", name="Try now").click()
    wait_until_live(page)
    expect(page.locator("[data-live-banner]")).to_be_hidden()
    expect(page.locator(f'tr[data-uid="{job.uid}"] .c-st')).to_have_text("Running")


def test_a_lost_network_is_said_at_once_and_the_line_comes_back_with_it(page: Page, server: Server, sign_in: Callable):
    sign_in()
    page.goto(f"{server.url}/jobs/")
    wait_until_live(page)
    page.context.set_offline(True)
    expect(page.locator("[data-live-link] .ba-dot")).to_have_attribute("data-live", "off")
    page.context.set_offline(False)
    wait_until_live(page)


def test_the_theme_changes_without_a_reload_and_stays(page: Page, server: Server, sign_in: Callable):
    sign_in()
    page.goto(server.url)
    page.evaluate("window.here = true")
    page.get_by_role("button", name="Switch between light and dark").click()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    assert page.evaluate("window.here") is True
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")


def test_pages_work_without_scripts(browser: Any, server: Server, sign_in: Callable, page: Page):
    sign_in()
    make.save([make.job("alpha"), make.job("beta", phase=JobPhase.RUNNING)])
    context = browser.new_context(java_script_enabled=False, storage_state=page.context.storage_state())
    plain = context.new_page()
    plain.goto(f"{server.url}/jobs/")
    plain.get_by_role("checkbox", name="Running").check(force=True)
    plain.get_by_role("button", name="Apply").click()
    expect(plain.locator("#results tbody tr")).to_have_count(1)
    plain.get_by_role("link", name="beta").click()
    plain.get_by_role("link", name="Terminate…").click()
    expect(plain.get_by_role("button", name="Terminate")).to_be_visible()
    context.close()


PAGES = {
    "sign-in": "/sign-in/",
    "overview": "/",
    "jobs": "/jobs/?state=pending&state=running",
    "job": "/jobs/JOB/",
    "pods": "/jobs/JOB/?tab=pods",
    "logs": "/jobs/JOB/?tab=logs",
    "events": "/jobs/JOB/?tab=events",
    "yaml": "/jobs/JOB/?tab=yaml",
    "confirm": "/jobs/JOB/actions/terminate/",
    "404": "/nowhere/",
}


@pytest.mark.browser_context_args(bypass_csp=True)  # axe puts styles of its own into the page
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_pages_have_no_serious_faults_of_access(page: Page, server: Server, sign_in: Callable, name: str, theme: str):
    if not AXE.is_file():
        pytest.skip("axe-core is not installed")
    if name != "sign-in":
        sign_in()
    make.fleet()
    job = make.job("gang", verdict=make.verdict(), replicas=8)
    make.save([*make.many_jobs(60), job], make.pods(job, 8, phase="Pending"), [make.event(job, "Held", "why")])
    Task.objects.create(job=job, name="worker", position=0, replicas=8)
    page.context.add_cookies([{"name": "theme", "value": theme, "url": server.url}])
    page.goto(server.url + PAGES[name].replace("JOB", job.uid))
    found = faults(page)
    assert found == [], json.dumps(found, indent=1)


def faults(page: Page) -> list[dict[str, Any]]:
    """Serious and critical findings of axe."""
    page.evaluate(Path(AXE).read_text() + ";null")
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [fault for fault in result["violations"] if fault["impact"] in ("serious", "critical")]
    return [{"rule": f["id"], "at": [(n["html"][:160], n["failureSummary"][:200]) for n in f["nodes"][:4]]} for f in serious]
