"""A job's log as people read it: it grows by itself, can be searched and held still, and stays small in the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from cluster import runtime
from cluster.embedded.processes.supervisor.output import LogWriter
from cluster.logs.store import LogStore
from jobs.choices import JobPhase
from jobs.models import Pod
from tests import factories as make
from tests.browser.conftest import Server


class Printing:
    """A job of one pod whose program prints what it is told to."""

    def __init__(self, folder: Path) -> None:
        self.job = make.job("train", phase=JobPhase.RUNNING)
        make.save([self.job], make.pods(self.job, 1, phase="Running"))
        pod = Pod.objects.get(job_uid=self.job.uid)
        self._store, self._uid = LogStore(folder / "logs"), pod.uid
        spec = {"containers": [{"name": "main"}]}
        self._store.begin({"metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}, "spec": spec})
        self._writer = LogWriter(str(self._store.folder(pod.uid) / "main" / "0"), [], 64 << 20)

    def say(self, *lines: str) -> None:
        self._writer.write("stdout", "".join(f"{line}\n" for line in lines).encode())

    def end(self) -> None:
        self._store.ended(self._uid)


@pytest.fixture
def printing(server: Server, settings: Any, tmp_path: Path) -> Iterator[Printing]:
    settings.DATA_DIR = tmp_path
    runtime.run_commands([])
    yield Printing(tmp_path)
    runtime.run_commands(None)


def test_a_log_grows_by_one_request_and_says_when_it_is_over(page: Page, server: Server, sign_in: Callable, printing: Printing):
    sign_in()
    printing.say("first")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    page.goto(f"{server.url}/jobs/{printing.job.uid}/?tab=logs")
    expect(page.locator(".lg-l span")).to_have_text(["first"])
    printing.say("second", "third")
    expect(page.locator(".lg-l span")).to_have_text(["first", "second", "third"])
    printing.end()
    expect(page.locator("[data-log-state]")).to_contain_text("have ended")
    assert len(asked) == 1


def test_a_log_is_searched_and_held_still(page: Page, server: Server, sign_in: Callable, printing: Printing):
    sign_in()
    printing.say(*(f"step {n}" for n in range(20)))
    page.goto(f"{server.url}/jobs/{printing.job.uid}/?tab=logs")
    expect(page.locator("[data-log-count]")).to_have_text("20 lines")
    page.get_by_label("Search in the log").fill("STEP 7")
    expect(page.locator(".lg-l mark")).to_have_text(["step 7"])
    expect(page.locator("[data-log-count]")).to_have_text("1 of 20 lines match")
    page.get_by_label("Search in the log").fill("")
    expect(page.locator(".lg-l")).to_have_count(20)
    page.get_by_role("button", name="Pause").click()
    printing.say("later")
    expect(page.locator("[data-log-count]")).to_contain_text("1 new")
    expect(page.locator(".lg-l")).to_have_count(20)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".lg-l span").last).to_have_text("later")
    printing.end()


def test_of_ten_megabytes_only_what_is_near_is_in_the_page(page: Page, server: Server, sign_in: Callable, printing: Printing):
    sign_in()
    printing.say(*(f"step {n} {'x' * 90}" for n in range(100_000)))
    page.goto(f"{server.url}/jobs/{printing.job.uid}/?tab=logs&lines=100000")
    expect(page.locator("[data-log-count]")).to_have_text("100,000 lines", timeout=60_000)
    expect(page.locator(".lg-l span").last).to_contain_text("step 99999 ")
    assert page.locator(".lg-l").count() < 1500
    page.locator("[data-log-view]").evaluate("view => { view.scrollTop = 0; }")
    expect(page.locator(".lg-l span").first).to_contain_text("step 0 ")
    assert page.locator(".lg-l").count() < 1500
    printing.end()


def test_what_a_program_prints_is_text_and_nothing_else(page: Page, server: Server, sign_in: Callable, printing: Printing):
    sign_in()
    printing.say("<img src=x onerror=alert(1)>", "\x1b[31mred\x1b[0m")
    page.goto(f"{server.url}/jobs/{printing.job.uid}/?tab=logs")
    expect(page.locator(".lg-l span")).to_have_text(["<img src=x onerror=alert(1)>", "red"])
    assert page.locator(".lg-view img").count() == 0
    printing.end()
