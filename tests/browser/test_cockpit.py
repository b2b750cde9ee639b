"""The cockpit's chart opens cycles and goes on; the overview fits its screen, also on a wall."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from cluster.embedded.store import EmbeddedCluster
from cluster.projection import notify
from portal.models import Cycle
from tests import factories
from tests.browser.conftest import Server

FITS = "[document.documentElement.scrollHeight <= innerHeight, document.documentElement.scrollWidth <= innerWidth]"


def keep(number: int, spent: float, seconds: float) -> Cycle:
    at = factories.now() - timedelta(seconds=seconds)
    hooks = {"open": {"gang": 0.5}, "allocate": {"gang": 1.0, "predicates": spent / 2}, "close": {}}
    kept = Cycle.objects.create(
        number=number, at=at, milliseconds=spent + 2, actions={"allocate": spent}, hooks=hooks, opening=1.0, bound=number
    )
    notify("scheduler", (str(number),))
    return kept


def test_a_bar_opens_its_cycle_and_new_cycles_come_by_themselves(page: Page, server: Server, sign_in: Callable):
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    for number in range(1, 6):
        keep(number, 10.0 * number, 60 - number)
    sign_in()
    page.goto(f"{server.url}/scheduler/?by=plugin")
    chart = page.locator("#ck-chart")
    expect(chart.locator("svg")).to_be_visible()
    expect(page.locator(".ba-figs .l").first).to_have_text("Cycle 5")
    expect(page.locator("html")).to_have_attribute("data-link", "on")
    page.evaluate("window.kept = document.querySelector('[data-part=last] tr[data-key]')")
    keep(6, 200.0, 1)
    expect(page.locator(".ba-figs .l").first).to_have_text("Cycle 6", timeout=15_000)
    expect(chart.locator("svg")).to_be_visible()
    expect(page.locator("#h-cycle")).to_have_text("Cycle 6")
    expect(page.locator("[data-part=last] tr[data-key] td:first-child")).to_have_text(["6", "5", "4", "3", "2", "1"])
    assert page.evaluate("[window.kept.isConnected, window.kept.cells[0].textContent]") == [
        True,
        "5",
    ]  # it was moved, not drawn anew
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_url("**/scheduler/cycles/*/**")
    assert faults == []


@pytest.mark.parametrize(("width", "height"), [(1920, 1080), (2560, 1440)])
@pytest.mark.parametrize("address", ["/", "/?wall=1"])
def test_the_overview_is_one_screen(
    page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster, width: int, height: int, address: str
):
    page.set_viewport_size({"width": width, "height": height})
    sign_in()
    page.goto(server.url + address)
    expect(page.locator("#ov-fleet canvas").first).to_be_visible()
    expect(page.locator("[data-chart=queues] svg")).to_be_visible()
    assert page.evaluate(FITS) == [True, True]
    expect(page.locator(".ba-rail")).to_be_visible(visible="wall" not in address)
