"""Submitting by keyboard, checking as one types, and the heatmap as a thing that moves."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from cluster import machines
from cluster.embedded.kubelet import Kubelet
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import JOB
from cluster.models import Node
from cluster.projection import notify
from queues.models import Queue
from tests import factories, fleet_rows
from tests.browser.conftest import NODE_MODULES, Server

AXE = NODE_MODULES / "axe-core" / "axe.min.js"


def ready(page: Page) -> None:
    """The editor stands and the last answer was taken over."""
    expect(page.locator(".cm-editor")).to_be_visible()


def yaml_text(page: Page) -> str:
    return page.locator("#yaml").input_value()


def test_a_job_is_submitted_by_keyboard_alone(page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster):
    sign_in()
    page.goto(f"{server.url}/submit/?shape=gang")
    ready(page)
    page.locator("#f-name").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("by-keys")
    page.keyboard.press("Tab")  # namespace
    page.keyboard.press("Tab")  # queue
    page.keyboard.press("Control+A")
    page.keyboard.type("prod")
    expect(page.locator("#yaml")).to_have_value(_containing("queue: prod"))
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/jobs/**")
    job = fleet.get(JOB, "by-keys", "default")
    assert job["spec"]["queue"] == "prod"
    assert job["metadata"]["annotations"]["basalt.dev/owner"] == "lena"


def _containing(text: str):
    import re

    return re.compile(re.escape(text))


def test_enter_in_a_field_submits_nothing(page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster):
    sign_in()
    page.goto(f"{server.url}/submit/?shape=single")
    ready(page)
    page.locator("#f-name").press("Enter")
    page.wait_for_timeout(300)
    assert page.url.endswith("/submit/?shape=single")
    assert fleet.list(JOB).items == []


def test_a_fault_shows_at_field_and_line_while_typing_and_goes_when_mended(
    page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster
):
    sign_in()
    page.goto(f"{server.url}/submit/?shape=gang")
    ready(page)
    page.locator("#f-tasks-0-cpu").fill("2cpus")
    expect(page.locator("#e-f-tasks-0-cpu")).to_contain_text("2cpus")
    expect(page.locator("#f-tasks-0-cpu")).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".cm-lint-marker-error")).not_to_have_count(0)
    expect(page.locator("#check")).to_contain_text("to mend")
    expect(page.locator("#f-tasks-0-cpu")).to_be_focused()
    page.locator("#f-tasks-0-cpu").fill("2")
    expect(page.locator("#e-f-tasks-0-cpu")).to_be_hidden()
    expect(page.locator(".cm-lint-marker-error")).to_have_count(0)
    expect(page.locator("#check")).to_contain_text("Ready to submit")


def test_what_is_typed_in_the_yaml_reaches_the_form_and_the_other_way(
    page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster
):
    sign_in()
    page.goto(f"{server.url}/submit/?shape=gang")
    ready(page)
    page.locator(".cm-content").get_by_text("minAvailable", exact=True).click()
    page.keyboard.press("Home")
    page.keyboard.type("priorityClassName: ''  # mine\n")
    expect(page.locator("#check")).not_to_contain_text("to mend")
    page.locator("#f-min_available").fill("3")
    expect(page.locator("#yaml")).to_have_value(_containing("minAvailable: 3"))
    assert "# mine" in yaml_text(page)
    assert page.locator(".cm-line.chg").count() >= 2


def test_tasks_come_and_go_without_a_reload(page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster):
    sign_in()
    page.goto(f"{server.url}/submit/?shape=single")
    ready(page)
    page.evaluate("window.here = true")
    page.get_by_role("button", name="Add task").click()
    expect(page.locator(".sb-task")).to_have_count(2)
    assert yaml_text(page).count("replicas:") == 2
    page.get_by_role("button", name="Remove task 1").click()
    expect(page.locator(".sb-task")).to_have_count(1)
    assert page.evaluate("window.here") is True


def test_the_queue_tree_walks_and_folds_by_keys(page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster):
    sign_in()
    page.goto(f"{server.url}/queues/")
    rows = page.locator("[data-tree] tbody tr")
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    page.locator("tr[data-queue=research]").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("tr[data-queue=nlp]")).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(page.locator("tr[data-queue=nlp]")).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url("**/queues/research/")
    expect(page.locator("#shares svg")).to_be_visible()


def live(page: Page) -> None:
    expect(page.locator("[data-live-link] .ba-dot")).to_have_attribute("data-live", "on")


def test_a_new_queue_and_a_new_node_wait_behind_a_chip(page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster):
    sign_in()
    page.goto(f"{server.url}/queues/")
    live(page)
    factories.save([factories.queue("brand-new")])
    notify("queues", ["brand-new"])
    expect(page.locator("[data-news]")).to_have_text("1 new")
    expect(page.locator("tr[data-queue=brand-new]")).to_have_count(0)
    page.locator("[data-news]").click()
    expect(page.locator("tr[data-queue=brand-new]")).to_have_count(1)
    page.goto(f"{server.url}/gpus/?node=")
    live(page)
    factories.save([factories.node("brand-new")])
    notify("topology", ["brand-new"])
    expect(page.locator("[data-news]")).to_have_text("1 new")


def test_a_queue_has_one_colour_on_every_page(page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster):
    sign_in()
    found = []
    for path in ("/", "/queues/", "/gpus/?by=queue"):
        page.goto(f"{server.url}{path}")
        found.append(page.locator("#queue-colours").inner_text())
    assert found[0] == found[1] == found[2]
    assert "default" in found[0]


def test_a_node_is_taken_down_and_the_list_shows_it(page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster):
    sign_in(staff=True)
    kubelet = Kubelet(fleet)
    machines.simulate(kubelet)
    page.goto(f"{server.url}/nodes/cpu-01/")
    page.get_by_role("button", name="Take down (simulated)").click()
    expect(page.locator(".ba-head .ba-st")).to_have_text("Not ready")
    page.get_by_role("button", name="Bring back").click()
    expect(page.locator(".ba-head .ba-st")).to_have_text("Ready")
    machines.simulate(None)
    kubelet.close()


@pytest.mark.browser_context_args(bypass_csp=True)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_have_no_serious_fault_for_assistive_technology(
    page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster, theme: str
):
    if not AXE.is_file():
        pytest.skip("axe-core is not installed")
    sign_in()
    page.context.add_cookies([{"name": "theme", "value": theme, "url": server.url}])
    node = Node.objects.filter(gpu_count__gt=0).first()
    faults = {}
    paths = (
        "/submit/",
        "/gpus/",
        "/gpus/?view=table",
        "/nodes/",
        f"/nodes/{node.name}/",
        "/queues/",
        "/queues/prod/",
        "/queues/prod/edit/",
    )
    for path in paths:
        page.goto(server.url + path)
        time.sleep(0.4)
        page.evaluate(AXE.read_text())
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        serious = [
            (each["id"], [node["html"][:120] for node in each["nodes"]][:3])
            for each in found
            if each["impact"] in ("serious", "critical")
        ]
        if serious:
            faults[path] = serious
    assert faults == {}


def test_a_queues_figures_change_where_they_stand_and_in_its_parents(
    page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster
):
    sign_in()
    page.goto(f"{server.url}/queues/?resource=nvidia.com/gpu")
    expect(page.locator("[data-live-link] .ba-dot")).to_have_attribute("data-live", "on")
    figure = page.locator("tr[data-queue=nlp] [data-part=allocated]")
    above = page.locator("tr[data-queue=research] [data-part=allocated]")
    queue = Queue.objects.get(name="nlp")
    others = int(above.inner_text()) - int(figure.inner_text())
    queue.share_allocated = {fleet_rows.GPU: 77_000}
    queue.save()
    notify("queues", ["nlp"])
    expect(figure).to_have_text("77")
    expect(above).to_have_text(str(others + 77))
