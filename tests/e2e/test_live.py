"""Two browsers on different pages see a phase change within a second, without reloading; one that was offline catches up."""

import time

import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from tests.e2e.server import Server

pytestmark = pytest.mark.browser


def sign_in(browser: Browser, server: Server) -> Page:
    """A page of a browser of its own, signed in as the first user."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto(server.url)
    page.fill("input[name=username]", "admin")
    page.fill("input[name=password]", server.password)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_be_visible()
    return page


class Line:
    """The WebSocket line of a page, which a test can cut and mend. (Chromium's offline mode spares open WebSockets.)"""

    def __init__(self, page: Page) -> None:
        self._up, self._open = True, []
        page.route_web_socket("**/ws/live/", self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        if not self._up:
            socket.close()
            return
        self._open.append((socket, socket.connect_to_server()))

    def cut(self) -> None:
        """Close what is open, and refuse what comes."""
        self._up = False
        for page_side, server_side in self._open:
            server_side.close()
            page_side.close()
        self._open.clear()

    def mend(self) -> None:
        """Let connections through again."""
        self._up = True


def manifest(name: str, duration: str) -> dict:
    """A gang of two pods."""
    template = {
        "metadata": {"annotations": {"sim.basalt.dev/duration": duration, "sim.basalt.dev/start-delay": "0s"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
    }
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": 2, "tasks": [{"name": "w", "replicas": 2, "template": template}]},
    }


def test_two_browsers_see_a_phase_change_within_a_second(browser: Browser, server: Server):
    with server.client() as client:
        job = client.post("/jobs", json=manifest("watched", "2h")).json()
        on_list, on_job = sign_in(browser, server), sign_in(browser, server)
        on_list.goto(f"{server.url}/jobs/")
        on_job.goto(f"{server.url}/jobs/{job['uid']}/")
        row = on_list.get_by_role("row").filter(has_text="watched")
        expect(row).to_contain_text("Running")
        expect(on_job.locator(".ba-st").first).to_contain_text("Running")
        for page in (on_list, on_job):
            page.evaluate("window.untouched = true")
            expect(page.locator("[data-live-word]")).to_contain_text("Live")

        client.post("/jobs/default/watched/actions/suspend")
        asked = time.monotonic()
        expect(row).to_contain_text("Abort", timeout=1000)
        expect(on_job.locator(".ba-st").first).to_contain_text("Abort", timeout=1000)
        assert time.monotonic() - asked < 2
        assert all(page.evaluate("window.untouched") for page in (on_list, on_job))


def test_a_browser_that_was_offline_catches_up(browser: Browser, server: Server):
    with server.client() as client:
        client.post("/jobs", json=manifest("missed", "2h"))
        page = sign_in(browser, server)
        line = Line(page)
        page.goto(f"{server.url}/jobs/")
        row = page.get_by_role("row").filter(has_text="missed")
        expect(row).to_contain_text("Running")
        page.evaluate("window.untouched = true")
        line.cut()
        expect(page.locator("[data-live-word]")).not_to_contain_text("Live", timeout=20_000)
        client.post("/jobs/default/missed/actions/terminate")
        expect(row).to_contain_text("Running")
        line.mend()
        expect(row).to_contain_text("Terminated", timeout=20_000)
        assert page.evaluate("window.untouched")
