"""The map of GPUs at 1,000, 8,000 and 80,000 GPUs: server, bytes, first paint with a cold cache, changes, and panning.

For each size: the server's time for the page (through Django's test client), the size of the page and of the fleet in it;
in Chromium with an empty cache the time from navigation to the first painted cells; the time from 1,000 GPUs' change to the
last of their cells on the screen, with what the page's main thread spent on it; and frames while the whole map is panned.
Aim: first paint of 8,000 GPUs within a second.

Run it as `python -m bench.heatmap [--gpus N …] [--rounds N]`. It needs Chromium, and the npm packages.
"""

from __future__ import annotations

import argparse
import os
import shutil
import threading
import time
from statistics import median
from typing import Any

from bench.scratch import django_in_scratch, percentile
from bench.table import show

SIZES = (1_000, 8_000, 80_000)
CHANGES = 1_000
AIM = 1_000
"""Milliseconds until the first paint of 8,000 GPUs."""
PAN = """async () => {
  const gaps = [];
  let last = performance.now();
  const lowest = document.documentElement.scrollHeight - innerHeight;
  for (let frame = 0; frame < 90; frame += 1) {
    scrollTo(0, (lowest * frame) / 89);
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    gaps.push(now - last);
    last = now;
  }
  scrollTo(0, 0);
  return gaps;
}"""


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gpus", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        parser.exit(0, "heatmap: there is no Chromium here, so nothing was measured\n")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # Playwright's loop runs in the thread that fills the database
    with django_in_scratch():
        from playwright.sync_api import sync_playwright

        client, server = signed_in(), serve()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            rows = [(f"{gpus:,} GPUs", measure(gpus, options.rounds, client, server, browser)) for gpus in options.gpus]
            browser.close()
    changes = f"{CHANGES:,} changes ms"
    heads = [
        "server ms",
        "of it processor",
        "page kB",
        "fleet kB",
        "first paint ms",
        "quickest",
        changes,
        "of it thread ms",
        "frame p95 ms",
        "≤ 1 s",
    ]
    show(f"Map of GPUs, {options.rounds} rounds each, medians", rows, heads)


def signed_in() -> Any:
    """A browser's session."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    client = Client(headers={"host": "localhost"})
    client.force_login(get_user_model().objects.create_user("ada"), "django.contrib.auth.backends.ModelBackend")
    return client


def serve() -> str:
    """Pages and live channel in a thread; where they are."""
    import uvicorn

    from portal.asgi import application

    server = uvicorn.Server(uvicorn.Config(application, host="127.0.0.1", port=0, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.02)
    return f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}"


def measure(gpus: int, rounds: int, client: Any, server: str, browser: Any) -> list[str]:
    """One size of fleet: a row of the table."""
    fill(gpus)
    spent, worked, page = asked(client, rounds)
    painted, frames, whole, busy = [], list[float](), 0.0, 0.0
    for turn in range(rounds):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        session = client.cookies["sessionid"]
        context.add_cookies([{"name": session.key, "value": session.value, "url": server}])
        tab = context.new_page()
        tab.goto(f"{server}/gpus/?node=")
        tab.wait_for_selector("#hm[data-repainted='0']")
        painted.append(tab.evaluate("performance.getEntriesByName('fleet-painted')[0].startTime"))
        if turn == rounds - 1:
            whole, busy = changed(context, tab)
            frames = tab.evaluate(PAN)
        context.close()
    fleet = page.partition('id="hm-data"')[2].partition("</script>")[0]
    late = median(painted)
    reached = ("yes" if late <= AIM else "no") if gpus == SIZES[1] else ""
    sizes = [f"{len(text.encode()) / 1000:.0f}" for text in (page, fleet)]
    times = [late, min(painted), whole, busy, percentile(frames, 0.95)]
    return [f"{spent:.0f}", f"{worked:.0f}", *sizes, *(f"{each:.0f}" for each in times), reached]


def fill(gpus: int) -> None:
    """A fleet of so many GPUs with gangs on three quarters of them, instead of the one before."""
    from cluster.models import Node
    from jobs.models import Job, Pod
    from tests import fleet_rows

    for model in (Pod, Job, Node):
        model._default_manager.all().delete()
    fleet_rows.large_fleet(gpus // 8)
    fleet_rows.occupy()


def asked(client: Any, rounds: int) -> tuple[float, float, str]:
    """The server's time for the page in milliseconds, what of it the processor worked, and the page."""
    times, busy = [], []
    for _ in range(rounds + 1):
        begin, worked = time.perf_counter(), time.thread_time()
        answer = client.get("/gpus/?node=")
        times.append((time.perf_counter() - begin) * 1000)
        busy.append((time.thread_time() - worked) * 1000)
        assert answer.status_code == 200
    return median(times[1:]), median(busy[1:]), answer.content.decode()


def changed(context: Any, tab: Any) -> tuple[float, float]:
    """Free a thousand GPUs at once: milliseconds until the last cell is painted, and those of the page's main thread."""
    from cluster.projection import notify
    from jobs.models import Pod

    tab.wait_for_selector("[data-live-link] .ba-dot[data-live=on]")
    time.sleep(1)  # its first answer is there
    chosen, freed = [], 0
    for pod in Pod.objects.filter(phase="Running"):
        if freed + len(pod.gpus) > CHANGES:
            break
        chosen.append(pod)
        freed += len(pod.gpus)
    session = context.new_cdp_session(tab)
    session.send("Performance.enable")
    before, begin = thread_time(session), time.perf_counter()
    Pod.objects.filter(pk__in=[pod.pk for pod in chosen]).update(phase="Succeeded")
    notify("topology", {pod.node for pod in chosen})
    tab.wait_for_selector("#hm[data-fading='0']:not([data-repainted='0'])", timeout=60_000)
    return (time.perf_counter() - begin) * 1000, thread_time(session) - before


def thread_time(session: Any) -> float:
    """Milliseconds that the page's main thread has worked so far."""
    found = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return float(found["TaskDuration"]) * 1000


if __name__ == "__main__":
    main()
