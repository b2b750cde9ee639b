"""The frame on every kind of page: keys, and what live messages may not do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Request, expect

from cluster.projection import notify
from jobs.choices import JobPhase
from jobs.models import Job
from tests import factories as make
from tests.browser.conftest import Server

LISTS = ("/queues/", "/nodes/", "/jobs/")


def focused_line(page: Page) -> int:
    """The place of the list's line that has the focus, -1 for none."""
    return page.evaluate("[...document.querySelectorAll('main tbody tr')].indexOf(document.activeElement.closest('tr'))")


@pytest.mark.parametrize("path", LISTS)
def test_lists_are_gone_through_by_keys(page: Page, server: Server, sign_in: Callable, path: str):
    sign_in()
    make.fleet()
    make.save(make.many_jobs(6))
    page.goto(server.url + path)
    page.keyboard.press("j")
    page.wait_for_function("document.activeElement.closest('main tbody tr')")
    first = focused_line(page)
    page.keyboard.press("j")
    second = focused_line(page)
    assert second > first >= 0
    page.keyboard.press("k")
    assert focused_line(page) == first
    page.keyboard.press("Control+j")
    assert focused_line(page) == first


def test_keys_are_letters_inside_inputs(page: Page, server: Server, sign_in: Callable):
    sign_in()
    make.fleet()
    page.goto(f"{server.url}/queues/")
    box = page.locator("[data-search]")
    box.click()
    page.keyboard.type("gj?tk")
    expect(box).to_have_value("gj?tk")
    expect(page.locator("[data-shortcuts]")).to_be_hidden()
    assert page.url == f"{server.url}/queues/"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("[data-shortcuts]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("[data-shortcuts]")).to_be_hidden()
    page.keyboard.press("g")
    page.keyboard.press("n")
    expect(page).to_have_url(f"{server.url}/nodes/")


def test_a_message_causes_no_request(page: Page, server: Server, sign_in: Callable):
    sign_in()
    make.fleet()
    make.save([job := make.job("alpha")])
    for path, told in (("/jobs/", f'tr[data-uid="{job.uid}"] .c-pd .num'), (f"/jobs/{job.uid}/", "[data-tab-count=pods]")):
        page.goto(server.url + path)
        expect(page.locator("[data-live-link] .ba-dot")).to_have_attribute("data-live", "on")
        page.wait_for_load_state("networkidle")
        asked: list[str] = []

        def note(request: Request, asked: list[str] = asked) -> None:
            asked.append(request.url)

        page.on("request", note)
        for running in range(1, 6):
            Job.objects.filter(pk=job.pk).update(phase=JobPhase.RUNNING, running=running % 3)
            notify("jobs", [job.uid])
        if path == "/jobs/":
            expect(page.locator(told).first).to_have_text("2/2")
        else:
            expect(page.locator(".ba-head .ba-st")).to_have_attribute("data-st", "running")
        page.remove_listener("request", note)
        assert asked == []
        Job.objects.filter(pk=job.pk).update(phase=JobPhase.PENDING, running=0)
