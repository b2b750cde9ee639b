"""The map of GPUs as a thing that moves: what is painted, pointed at, selected, narrowed, and changed while one looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from cluster import runtime
from cluster.embedded.store import EmbeddedCluster
from cluster.models import Node
from cluster.projection import notify
from jobs.choices import PodPhase
from jobs.models import Pod
from tests import factories, fleet_rows
from tests.browser.conftest import Server

PIXELS = """canvas => {
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  return Array.from({length: data.length / 4}, (_, at) => data[4 * at + 3]).filter(Boolean).length;
}"""


@pytest.fixture
def fleet(server: Server) -> Iterator[EmbeddedCluster]:
    cluster = fleet_rows.demo_cluster()
    runtime.use(cluster)
    fleet_rows.occupy()
    yield cluster
    runtime.use(None)


@pytest.fixture
def heatmap(page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster) -> Page:
    sign_in()
    page.goto(f"{server.url}/gpus/?node=")
    live(page)
    return page


def live(page: Page) -> None:
    expect(page.locator("[data-live-link] .ba-dot")).to_have_attribute("data-live", "on")
    expect(page.locator("#hm")).to_have_attribute("data-repainted", "0")


def running() -> Pod:
    """A pod that runs on whole GPUs of a node that is well."""
    return next(
        pod
        for pod in Pod.objects.filter(phase=PodPhase.RUNNING)
        if Node.objects.filter(name=pod.node, ready=True, gpu_unhealthy=[]).exists()
    )


def end(pod: Pod) -> None:
    Pod.objects.filter(pk=pod.pk).update(phase=PodPhase.SUCCEEDED)
    notify("topology", [pod.node])


def test_it_draws_answers_keys_and_leads_to_the_job(heatmap: Page):
    canvas = heatmap.locator("#hm canvas").first
    expect(canvas).to_be_visible()
    assert canvas.evaluate(PIXELS) > 1000
    heatmap.locator("#hm").focus()
    heatmap.keyboard.press("ArrowRight")
    expect(heatmap.locator("#hm-card")).to_be_visible()
    expect(heatmap.locator("#hm-say")).to_contain_text("GPU 0")
    heatmap.keyboard.press("ArrowRight")
    expect(heatmap.locator("#hm-say")).to_contain_text("GPU 1")
    first = heatmap.locator("#hm-say").inner_text()
    heatmap.keyboard.press("ArrowDown")
    expect(heatmap.locator("#hm-say")).not_to_have_text(first)
    heatmap.keyboard.press("PageDown")
    expect(heatmap.locator("#hm-say")).to_contain_text("GPU 0")
    heatmap.keyboard.press("Escape")
    expect(heatmap.locator("#hm-card")).to_be_hidden()
    heatmap.keyboard.press("ArrowRight")
    heatmap.keyboard.press(" ")
    expect(heatmap.locator("#hm-panel h2").first).to_be_visible()
    heatmap.keyboard.press("Escape")
    heatmap.keyboard.press("Escape")
    heatmap.keyboard.press("Escape")
    expect(heatmap.locator("#hm-panel")).to_be_hidden()
    pod = running()
    heatmap.goto(f"{heatmap.url.split('?')[0]}?node={pod.node}")
    live(heatmap)
    heatmap.locator("#hm").focus()
    heatmap.keyboard.press("ArrowRight")
    for _ in range(min(pod.gpus)):
        heatmap.keyboard.press("ArrowRight")
    heatmap.keyboard.press("Enter")
    heatmap.wait_for_url(f"**/jobs/{pod.job_uid}/")


def test_the_card_says_who_has_a_gpu_since_when_and_that_nobody_measured_it(heatmap: Page):
    pod = running()
    heatmap.locator("#hm-find").fill(pod.node)
    heatmap.goto(f"{heatmap.url.split('?')[0]}?node={pod.node}")
    live(heatmap)
    heatmap.locator("#hm").focus()
    heatmap.keyboard.press("ArrowRight")
    for _ in range(min(pod.gpus)):
        heatmap.keyboard.press("ArrowRight")
    card = heatmap.locator("#hm-card")
    for words in (f"{pod.node}, GPU {min(pod.gpus)}", "Allocated", "for ", f"{pod.task} {pod.index}", pod.queue, "not measured"):
        expect(card).to_contain_text(words)
    expect(card.locator("a")).to_have_attribute("href", f"/jobs/{pod.job_uid}/")


def test_a_change_repaints_its_own_cells_only_and_keeps_what_is_pointed_at(heatmap: Page):
    pod = running()
    used = heatmap.locator("[data-count=used]")
    before = int(used.inner_text())
    heatmap.locator("#hm").focus()
    heatmap.keyboard.press("ArrowRight")
    said = heatmap.locator("#hm-card h4").text_content() or ""
    drawn = heatmap.locator("#hm").get_attribute("data-drawn")
    end(pod)
    expect(used).to_have_text(str(before - len(pod.gpus)))
    expect(heatmap.locator("#hm")).to_have_attribute("data-repainted", str(len(pod.gpus)))
    expect(heatmap.locator("#hm")).to_have_attribute("data-drawn", drawn or "")
    expect(heatmap.locator("#hm-card h4")).to_have_text(said)
    expect(heatmap.locator("[data-key=free] b")).to_have_text(heatmap.locator("[data-count=free]").inner_text())


def test_what_changed_while_the_line_was_down_is_repainted_when_it_is_back(heatmap: Page, server: Server):
    pod = running()
    before = int(heatmap.locator("[data-count=used]").inner_text())
    server.stop()
    expect(heatmap.locator("[data-live-link] .ba-dot")).to_have_attribute("data-live", "off")
    Pod.objects.filter(pk=pod.pk).update(phase=PodPhase.SUCCEEDED)
    server.start()
    expect(heatmap.locator("[data-count=used]")).to_have_text(str(before - len(pod.gpus)), timeout=15_000)
    assert heatmap.locator("#hm").get_attribute("data-repainted") == str(len(pod.gpus))


def test_a_selected_job_is_bright_wherever_it_is_and_the_address_says_so(heatmap: Page, server: Server):
    pod = running()
    gpus = sum(
        len(set(each.gpus))
        for each in Pod.objects.filter(job_uid=pod.job_uid, phase__in=("Running", "Terminating")).exclude(node="")
    )
    heatmap.goto(f"{server.url}/gpus/?node=&job={pod.job_uid}")
    shown = heatmap.locator("#hm-shown")
    expect(shown).to_contain_text(f"GPUs: {gpus} ")
    shown.get_by_role("button").click()
    expect(shown).to_be_hidden()
    assert "job=" not in heatmap.url
    heatmap.locator("#hm-find").fill(pod.queue.upper())
    expect(shown).to_contain_text("GPUs shown")
    assert f"q={pod.queue.upper()}" in heatmap.url
    heatmap.reload()
    expect(heatmap.locator("#hm-find")).to_have_value(pod.queue)
    expect(shown).to_contain_text("GPUs shown")


def test_the_legend_counts_and_narrows(heatmap: Page):
    key = heatmap.locator("[data-key=unhealthy]")
    expect(key.locator("b")).to_have_text("2")
    key.click()
    expect(heatmap.locator("[data-key=unhealthy]")).to_have_attribute("aria-pressed", "true")
    expect(heatmap.locator("#hm-shown")).to_contain_text("2 of ")
    assert "state=unhealthy" in heatmap.url
    heatmap.get_by_role("button", name="Queue", exact=True).click()
    expect(heatmap.locator("#hm-shown")).to_be_hidden()
    expect(heatmap.locator("#hm-legend [data-cat]").first).to_be_visible()
    heatmap.get_by_role("button", name="Load", exact=True).click()
    expect(heatmap.locator("#hm-legend")).to_contain_text("Nobody measures the load of these GPUs.")


def test_cards_that_are_shared_say_who_has_which_part(page: Page, server: Server, sign_in: Callable, fleet: EmbeddedCluster):
    node = factories.node("l40s-1", 2, gpu_cards=[["GPU-a", 48_000], ["GPU-b", 48_000]], gpu_memory_mib=48_000)
    jobs = [factories.job(name, owner=name, phase="Running") for name in ("ann", "bob")]
    parts = [
        *factories.pods(jobs[0], 1, node="l40s-1", gpus=[], cards=[["GPU-a", 24_000, 50]]),
        *factories.pods(jobs[1], 1, node="l40s-1", gpus=[], cards=[["GPU-a", 12_000, 25]]),
    ]
    factories.save([node], jobs, parts)
    sign_in()
    page.goto(f"{server.url}/gpus/?node=l40s-1")
    live(page)
    expect(page.locator("[data-key=shared] b")).to_have_text("1")
    page.locator("#hm").focus()
    page.keyboard.press("ArrowRight")
    card = page.locator("#hm-card")
    for words in ("Shared, 2 pods", "default/ann 50%", "default/bob 25%", "various", "35.2 GiB of 46.9 GiB promised"):
        expect(card).to_contain_text(words)
    assert page.locator(".hm-parts i").evaluate_all("parts => parts.map(part => part.style.getPropertyValue('--w'))") == [
        "50%",
        "25%",
    ]


def test_eighty_thousand_gpus_are_a_map_of_which_only_what_is_seen_is_painted(page: Page, server: Server, sign_in: Callable):
    fleet_rows.large_fleet(10_000)
    sign_in()
    page.goto(f"{server.url}/gpus/?node=")
    live(page)
    painted = "document.querySelectorAll('#hm canvas[width]:not([width=\"0\"])').length"
    assert page.evaluate("document.querySelectorAll('#hm canvas').length") > page.evaluate(painted) > 0
    page.locator("#hm-zoom [data-zoom='1']").click()
    expect(page.locator("#hm canvas").first).to_be_visible()
    page.locator("#hm-legend [data-key=free]").click()
    expect(page.locator("#hm-shown")).to_contain_text("80,000 of 80,000")


@pytest.mark.parametrize("movement", ["no-preference", "reduce"])
def test_a_change_fades_in_unless_one_wants_no_movement(heatmap: Page, movement: str):
    heatmap.emulate_media(reduced_motion=movement)
    heatmap.evaluate(
        """() => {
          window.frames_ = 0;
          const real = window.requestAnimationFrame;
          window.requestAnimationFrame = (work) => real((now) => { window.frames_ += 1; work(now); });
        }"""
    )
    pod = running()
    end(pod)
    expect(heatmap.locator("#hm")).to_have_attribute("data-repainted", str(len(pod.gpus)))
    expect(heatmap.locator("#hm")).to_have_attribute("data-fading", "0")
    frames = heatmap.evaluate("window.frames_")
    assert frames == 1 if movement == "reduce" else frames > 1


def test_the_node_at_the_side_follows_without_asking_for_anything(heatmap: Page, server: Server):
    pod = running()
    heatmap.goto(f"{server.url}/gpus/?node={pod.node}")
    live(heatmap)
    row = heatmap.locator(f"#hm-panel [data-gpu='{pod.gpus[0]}']")
    expect(row.locator(".hm-sw")).to_have_attribute("data-state", "allocated")
    asked: list[str] = []
    heatmap.on("request", lambda request: asked.append(request.url))
    end(pod)
    expect(row.locator(".hm-sw")).to_have_attribute("data-state", "free")
    assert asked == []
