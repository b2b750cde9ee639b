"""The submit page while somebody types: what a check takes, with 1,000 nodes and 200 queues, through Django's test client.

The aim is 150 ms for a check. The dry run asks the copy of the cluster and is measured by `bench.whatif`.

Run it as `python -m bench.submit [--queues N] [--nodes N] [--requests N]`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from bench.joblist import signed_in
from bench.scratch import django_in_scratch
from bench.table import show

AIM = 150
"""Milliseconds that 95 of 100 checks may take."""


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=40)
    options = parser.parse_args()
    with django_in_scratch():
        client = prepared(options.queues, options.nodes)
        rows = [(name, measured(ask, options.requests)) for name, ask in asks(client).items()]
    title = f"Submit page, {options.queues} queues, {options.nodes:,} nodes, {options.requests} requests each"
    show(title, rows, ["median ms", "p95 ms", "processor p95 ms", f"≤ {AIM} ms"])


def prepared(queues: int, nodes: int) -> Any:
    """Queues and nodes as rows, the queue that jobs go into in an embedded cluster, a blueprint, and somebody signed in."""
    from django.contrib.auth import get_user_model

    from cluster import runtime
    from cluster.embedded.store import EmbeddedCluster
    from cluster.kinds import QUEUE
    from jobs.blueprints import definition, operations
    from testbed.many_queues import make_queues

    cluster = EmbeddedCluster()
    runtime.use(cluster)
    cluster.create(QUEUE, {"metadata": {"name": "default"}, "spec": {"weight": 1}})
    make_queues(queues, runtime.now(), nodes=nodes, window=timedelta(minutes=5))
    client = signed_in()
    operations.create(get_user_model().objects.first(), definition.example("train"))
    return client


def asks(client: Any) -> dict[str, Callable[[int], Any]]:
    """What is asked, by name; each with another number, so that nothing is remembered."""
    from jobs.submit import forms
    from jobs.submit.draft import Draft
    from jobs.submit.shapes import BY_KEY

    found: dict[str, Callable[[int], Any]] = {}
    for shape in ("gang", "pytorch"):
        text = BY_KEY[shape].manifest("bench")
        shown = forms.read(Draft(text))
        draft = {"yaml": text, "shown": json.dumps(shown), "start": json.dumps(shown)}

        def form(number: int, draft: dict[str, str] = draft, shown: dict[str, str] = shown) -> Any:
            return client.post("/submit/validate/", draft | shown | {"tasks.0.cpu": str(number + 1), "side": "form"})

        def yaml(number: int, draft: dict[str, str] = draft) -> Any:
            return client.post("/submit/validate/", draft | {"yaml": draft["yaml"] + f"# {number}\n", "side": "yaml"})

        found |= {f"{shape}, a field was changed": form, f"{shape}, the YAML was changed": yaml}
    found["a blueprint, a value was changed"] = lambda n: client.post(
        "/blueprints/train/preview/", {"p.workers": str(n % 16 + 1)}
    )
    return found


def measured(ask: Callable[[int], Any], requests: int) -> list[str]:
    """Wall and processor milliseconds of one kind of request."""
    wall, worked = [], []
    for number in range(requests + 3):
        start, began = time.perf_counter(), time.process_time()
        answer = ask(number)
        wall.append((time.perf_counter() - start) * 1000)
        worked.append((time.process_time() - began) * 1000)
        assert answer.status_code == 200, answer.content[:300]
    wall, worked = sorted(wall[3:]), sorted(worked[3:])
    last = int(requests * 0.95)
    reached = "yes" if worked[last] <= AIM else "no"
    return [*(f"{value:.0f}" for value in (wall[requests // 2], wall[last], worked[last])), reached]


if __name__ == "__main__":
    main()
