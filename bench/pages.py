"""What each page weighs and when it first paints, as a browser that was never here gets it; at 100,000 jobs in 200 queues.

Run it as `python -m bench.pages [--jobs N] [--runs N] [--pages NAME…]`. Chromium loads each page with an empty cache from a
server on this machine, served as in production (static files gathered and compressed). Weights are bytes over the wire, by kind,
in kB. First paint is the browser's own first contentful paint since the request was sent, the median of the runs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.scratch import django_in_scratch
from bench.table import show

KINDS = {"Document": "HTML", "Script": "JS", "Stylesheet": "CSS", "Font": "fonts"}
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
NODES = 1000


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--pages", nargs="*", help="by the table's names; all unless some are named")
    options = parser.parse_args()
    with django_in_scratch() as folder:
        gather(folder)
        paths, cookie = fill(options.jobs)
        url = serve()
        wanted = {name: path for name, path in paths.items() if not options.pages or name in options.pages}
        rows = measured(url, cookie, wanted, options.runs)
    title = f"Pages, cold cache, {options.jobs:,} jobs, {NODES:,} nodes, median of {options.runs} runs"
    show(title, rows, ["HTML kB", "JS kB", "CSS kB", "fonts kB", "other kB", "all kB", "requests", "first paint ms"])


def gather(folder: Path) -> None:
    """Static files as an installation has them."""
    from django.conf import settings
    from django.contrib.staticfiles.storage import staticfiles_storage
    from django.core.management import call_command

    settings.STATIC_ROOT, settings.WHITENOISE_USE_FINDERS = folder / "staticfiles", False
    staticfiles_storage.base_location = staticfiles_storage.location = str(settings.STATIC_ROOT)
    call_command("collectstatic", interactive=False, verbosity=0)


def fill(jobs: int) -> tuple[dict[str, str], dict[str, str]]:
    """Rows for every page; the pages by name, and the session of somebody who is signed in."""
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.test import Client

    from jobs.choices import JobPhase
    from jobs.models import Job, Task
    from queues.models import Queue
    from testbed.many_jobs import make_jobs
    from tests import factories as make

    make_jobs(jobs, queues=200, owners=400, labels=True)
    make.save([make.queue("root"), *(make.queue(f"queue-{n}", share_allocated={make.GPU: 8000}) for n in range(200))])
    make.save([make.node(f"n-{n:04}", rack=f"r{n // 16:02}", spine=f"spine-{n // 128}") for n in range(NODES)])
    running = Job.objects.filter(phase=JobPhase.RUNNING).first()
    waiting = Job.objects.filter(phase=JobPhase.PENDING).first()
    for job in filter(None, (running, waiting)):
        Task.objects.create(job=job, name="worker", position=0, replicas=job.replicas)
        make.save(make.pods(job, job.replicas, node="n-0001" if job is running else ""))
    assert Queue.objects.count() == 201
    client = Client()
    client.force_login(get_user_model().objects.create_user("ada", is_staff=True), "django.contrib.auth.backends.ModelBackend")
    cookie = {"name": settings.SESSION_COOKIE_NAME, "value": client.cookies[settings.SESSION_COOKIE_NAME].value}
    paths = {
        "overview": "/", "jobs": "/jobs/", "jobs, by queue": "/jobs/?group=queue", "job, waiting": f"/jobs/{waiting.uid}/",
        "job, running": f"/jobs/{running.uid}/", "pods": f"/jobs/{running.uid}/?tab=pods", "submit": "/submit/",
        "blueprints": "/blueprints/", "flows": "/flows/", "cron jobs": "/crons/", "queues": "/queues/",
        "queue": "/queues/queue-7/", "GPUs": "/gpus/", "topology": "/topology/", "nodes": "/nodes/", "node": "/nodes/n-0001/",
        "scheduler": "/scheduler/", "simulations": "/simulations/", "preferences": "/preferences/", "sign-in": "/sign-in/",
    }  # fmt: skip
    return paths, cookie


def serve() -> str:
    """A server in a thread; its address."""
    import uvicorn

    from portal.asgi import application

    config = uvicorn.Config(application, port=0, log_config=None, access_log=False, ws_per_message_deflate=False)
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}"


def measured(url: str, cookie: dict[str, str], paths: dict[str, str], runs: int) -> list[tuple[str, list[str]]]:
    """A row for each page."""
    from playwright.sync_api import sync_playwright

    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        rows = []
        for name, path in paths.items():
            looks = [look(browser, url, path, None if name == "sign-in" else cookie) for _ in range(runs + 1)][1:]
            weights, requests, _ = looks[-1]
            paint = statistics.median(found for *_, found in looks)
            kilo = {kind: f"{weights[kind] / 1000:,.0f}" for kind in ("HTML", "JS", "CSS", "fonts", "other")}
            rows.append((name, [*kilo.values(), f"{sum(weights.values()) / 1000:,.0f}", str(requests), f"{paint:.0f}"]))
        browser.close()
    return rows


def look(browser: Any, url: str, path: str, cookie: dict[str, str] | None) -> tuple[dict[str, int], int, float]:
    """One page in a new context: bytes by kind, number of requests, first contentful paint in ms."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    if cookie is not None:
        context.add_cookies([cookie | {"url": url}])
    page = context.new_page()
    tap = context.new_cdp_session(page)
    tap.send("Network.enable")
    kinds: dict[str, str] = {}
    weights: defaultdict[str, int] = defaultdict(int)

    def loaded(event: dict[str, Any]) -> None:
        weights[kinds.get(event["requestId"], "other")] += int(event["encodedDataLength"])

    tap.on("Network.responseReceived", lambda event: kinds.update({event["requestId"]: KINDS.get(event["type"], "other")}))
    tap.on("Network.loadingFinished", loaded)
    answer = page.goto(url + path, wait_until="networkidle")
    assert answer.status == 200, (path, answer.status)
    assert page.url.split("?")[0] == (url + path).split("?")[0], f"{path} led to {page.url}"
    paint = page.evaluate(PAINT)
    context.close()
    return weights, len(kinds), paint or float("nan")


if __name__ == "__main__":
    main()
