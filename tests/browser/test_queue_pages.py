"""The pages of queues as things that move: the tree by keys, a past minute by keys, a bar that says what it shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from cluster import runtime
from cluster.embedded.store import EmbeddedCluster
from cluster.projection import notify
from queues.models import Queue
from tests import fleet_rows
from tests.browser.conftest import Server


@pytest.fixture
def fleet(server: Server) -> Iterator[EmbeddedCluster]:
    cluster = fleet_rows.demo_cluster()
    runtime.use(cluster)
    fleet_rows.occupy()
    fleet_rows.shares(steps=60)
    yield cluster
    runtime.use(None)


def test_the_tree_is_walked_and_folded_by_keys(page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster):
    sign_in()
    page.goto(f"{server.url}/queues/")
    page.locator("tr[data-queue=root]").focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    research = page.locator("tr[data-queue=research]")
    expect(research).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(research).to_have_attribute("aria-expanded", "false")
    expect(page.locator("tr[data-queue=nlp]")).to_be_hidden()
    page.keyboard.press("ArrowDown")
    expect(page.locator("tr[data-queue=teaching]")).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("tr[data-queue=nlp]")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/queues/nlp/")


def test_a_past_minute_is_picked_by_keys_and_kept_in_the_address(
    page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster
):
    sign_in()
    page.goto(f"{server.url}/queues/")
    handle = page.locator("#scrub")
    expect(handle).to_have_attribute("aria-valuetext", re.compile(r"\d\d:\d\d"))
    handle.focus()
    before = handle.input_value()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    expect(page.locator("#moment .qm-t")).to_be_visible()
    assert int(before) - int(handle.input_value()) == 3 * 60_000
    page.wait_for_url(re.compile(r"[?&]at="))
    first = page.locator("#moment .qm-head b").inner_text()
    page.locator("#moment a[rel=prev]").click()
    expect(page.locator("#moment .qm-head b")).not_to_have_text(first)
    page.reload()
    expect(page.locator("#moment .qm-t")).to_be_visible()


def test_a_bar_that_changes_says_so_in_words_and_only_its_row_moves(
    page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster
):
    sign_in()
    page.goto(f"{server.url}/queues/?resource=nvidia.com/gpu&q=nlp")
    expect(page.locator("[data-live-link] .ba-dot")).to_have_attribute("data-live", "on")
    bar = page.locator("tr[data-queue=nlp] .ba-share")
    above = page.locator("tr[data-queue=research] [data-part=allocated]")
    others = int(above.inner_text()) - int(page.locator("tr[data-queue=nlp] [data-part=allocated]").inner_text())
    queue = Queue.objects.get(name="nlp")
    queue.share_allocated = {fleet_rows.GPU: 30_000}
    queue.save()
    notify("queues", ["nlp"])
    expect(bar).to_have_attribute("aria-label", re.compile("deserved 24, allocated 30"))
    expect(bar.locator(".bor")).to_be_attached()
    expect(above).to_have_text(str(30 + others))  # queues that the filter hides count in it too
    assert page.locator("tr[data-queue=prod]").count() == 0
