"""The pages of 200 queues over 1,000 nodes with a day of samples: server time and queries, through Django's test client.

The aim is 300 ms for each page.

Run it as `python -m bench.queues [--queues N] [--nodes N] [--hours N] [--requests N]`.
"""

from __future__ import annotations

import argparse
from datetime import timedelta

from bench.joblist import measure, signed_in
from bench.scratch import django_in_scratch
from bench.table import show

AIM = 300
"""Milliseconds that 95 of 100 requests may take."""


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--requests", type=int, default=40)
    options = parser.parse_args()
    with django_in_scratch():
        from cluster import runtime
        from testbed.many_queues import make_queues

        now = runtime.now()
        make_queues(options.queues, now, nodes=options.nodes, window=timedelta(hours=options.hours))
        past = (now - timedelta(hours=options.hours / 2)).strftime("%Y-%m-%dT%H:%M:%SZ")
        pages = {
            "tree": "/queues/",
            "tree, one resource": "/queues/?resource=memory",
            "tree, GPU models": "/queues/?resource=models",
            "tree, a past minute": f"/queues/?at={past}",
            "tree, 24 h": "/queues/?window=24h",
            "one queue": "/queues/queue-7/",
            "fairness, 1 h": "/queues/fairness/",
            "fairness, 24 h": "/queues/fairness/?window=24h",
            "REST, a past minute": f"/api/v1/queue-shares?at={past}",
            "REST, fairness 24 h": "/api/v1/fairness?window=24h",
        }
        client = signed_in()
        rows = [(name, measure(client, path, options.requests, AIM)) for name, path in pages.items()]
    title = f"{options.queues} queues, {options.nodes:,} nodes, {options.hours} h of samples, {options.requests} requests each"
    show(title, rows, ["median ms", "p95 ms", "processor p95 ms", "queries", "kB", f"≤ {AIM} ms"])


if __name__ == "__main__":
    main()
