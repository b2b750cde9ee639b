"""The job list in a browser: keys, selection, bulk actions from it, columns, groups; the drawing of very many pods."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from jobs.bulk.models import BulkOperation
from jobs.choices import JobPhase
from jobs.models import Task
from tests import factories as make

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")


@pytest.fixture
def listed(server, sign_in, page: Page):
    sign_in()
    start = make.now()
    make.save([make.job(f"job-{n}", phase=JobPhase.RUNNING, created_at=start - timedelta(minutes=n)) for n in range(5)])
    page.goto(f"{server.url}/jobs/")
    return page


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.matches('a.name') ? document.activeElement.textContent : ''"))


def test_keys_move_select_and_open(listed: Page):
    for key, where in (("j", "job-0"), ("j", "job-1"), ("j", "job-2"), ("k", "job-1")):
        listed.keyboard.press(key)
        assert focused(listed) == where
    listed.keyboard.press("x")
    listed.keyboard.press("j")
    listed.keyboard.press("x")
    expect(listed.locator("[data-picked]")).to_have_text("2 selected")
    expect(listed.locator("tr[aria-selected=true]")).to_have_count(2)
    listed.keyboard.press("Escape")
    expect(listed.locator("[data-pick]:checked")).to_have_count(0)
    listed.keyboard.press("Enter")
    listed.wait_for_url("**/jobs/*-*/")
    expect(listed.locator("h1")).to_have_text("job-2")


def test_keys_do_nothing_while_somebody_types_or_holds_a_modifier(listed: Page):
    for field in ("#q", "input[name=label]", "select[name=group]"):
        listed.locator(field).focus()
        listed.keyboard.press("j")
        listed.keyboard.press("x")
        assert focused(listed) == ""
    listed.locator("h1").click()
    for key in ("Control+j", "Alt+j", "Meta+x"):
        listed.keyboard.press(key)
        assert focused(listed) == ""
    expect(listed.locator("[data-pick]:checked")).to_have_count(0)


def test_a_selection_is_not_lost_when_the_list_comes_anew_and_leads_to_a_preview(listed: Page):
    listed.locator("[data-pick]").nth(1).check()
    assert "uid=" not in listed.url
    with listed.expect_response(lambda answer: "q=job" in answer.url):
        listed.locator("#q").fill("job")
    expect(listed.locator("[data-picked]")).to_have_text("1 selected")
    listed.locator("select[name=action]").select_option("terminate")
    assert "action=" not in listed.url
    listed.locator("[data-bulk] button").click()
    expect(listed.locator("h1")).to_have_text("Terminate: 1 job")
    assert BulkOperation.objects.get().items.get().job.name == "job-1"


def test_all_on_the_page_are_selected_by_the_head(listed: Page):
    listed.locator("[data-pick-all]").check()
    expect(listed.locator("[data-picked]")).to_have_text("5 selected")


def test_columns_and_groups_are_chosen_on_the_page(listed: Page):
    listed.locator(".tally summary").click()
    listed.locator("input[name=columns][value=memory]").check()
    listed.get_by_role("button", name="Show").click()
    expect(listed.get_by_role("columnheader", name="Memory")).to_be_visible()
    with listed.expect_response(lambda answer: "group=queue" in answer.url):
        listed.locator("select[name=group]").select_option("queue")
    expect(listed.locator(".groups tbody tr")).to_have_count(1)
    expect(listed.locator("a[data-export]").first).to_have_attribute("href", re.compile(r"[?&]group=queue\b"))
    listed.keyboard.press("Tab")
    listed.locator(".groups a.name").click()
    expect(listed.locator("#results tr[data-uid]")).to_have_count(5)


def test_a_view_is_kept_from_the_menu(listed: Page):
    listed.locator("#q").fill("job-1")
    expect(listed.locator("#results tr[data-uid]")).to_have_count(1)
    listed.locator(".views summary").click()
    listed.get_by_label("Keep this list as").fill("just one")
    listed.get_by_role("button", name="Keep view").click()
    expect(listed.locator(".views [aria-current]")).to_have_text("just one")
    expect(listed.locator("#results tr[data-uid]")).to_have_count(1)


def test_a_cell_of_very_many_pods_leads_to_its_pod(server, sign_in, page: Page):
    sign_in()
    job = make.job("huge", phase=JobPhase.RUNNING, replicas=3_000)
    make.save([job])
    Task.objects.create(job=job, name="worker", position=0, replicas=3_000, counts={"Running": 3_000})
    make.save(make.pods(job, 3_000))
    page.goto(f"{server.url}/jobs/{job.uid}/")
    drawing = page.locator("[data-podmap]")
    box = drawing.bounding_box()
    assert box is not None
    drawing.click(position={"x": box["width"] * 10.5 / 200, "y": box["height"] * 3.5 / 15})
    page.wait_for_url("**index=610*")
    expect(page.locator("[data-pods] tbody tr")).to_have_count(1)
    expect(page.locator("[data-pods] a.name")).to_have_text("huge-worker-610")
