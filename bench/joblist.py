"""The job list with 10,000 jobs: server time and number of queries of a page, through Django's test client.

Run it as `python -m bench.joblist [--jobs N] [--requests N]`.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from bench.scratch import django_in_scratch, percentile
from bench.table import show

PAGES = {
    "page": "/jobs/",
    "page, pending": "/jobs/?phase=Pending",
    "page, name contains": "/jobs/?q=77",
    "page, by GPUs": "/jobs/?sort=-gpus",
    "REST": "/api/v1/jobs",
    "REST, pending by GPUs": "/api/v1/jobs?phase=Pending&ordering=-gpus",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=60)
    options = parser.parse_args()
    with django_in_scratch():
        from tests.portal.bulk import make_jobs

        make_jobs(options.jobs)
        client = signed_in()
        rows = [(name, measure(client, path, options.requests)) for name, path in PAGES.items()]
    title = f"Job list, {options.jobs:,} jobs, {options.requests} requests each"
    show(title, rows, ["median ms", "p95 ms", "queries", "kB"])


def signed_in() -> Any:
    """A browser's session."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    client = Client(headers={"host": "localhost"})
    client.force_login(get_user_model().objects.create_user("ada"), "django.contrib.auth.backends.ModelBackend")
    return client


def measure(client: Any, path: str, requests: int) -> list[str]:
    """Median and p95 of the server's time, queries and size; the first requests warm up."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    for _ in range(3):
        answer = client.get(path)
        assert answer.status_code == 200, (path, answer.status_code)
    with CaptureQueriesContext(connection) as captured:
        client.get(path)
    queries = len(captured)
    times = []
    for _ in range(requests):
        begin = time.perf_counter()
        answer = client.get(path)
        times.append((time.perf_counter() - begin) * 1000)
    size = len(answer.content) / 1000
    return [f"{percentile(times, 0.5):.0f}", f"{percentile(times, 0.95):.0f}", str(queries), f"{size:.0f}"]


if __name__ == "__main__":
    main()
