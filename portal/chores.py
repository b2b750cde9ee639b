"""What each web process of a Kubernetes cluster does beside serving: actions on many jobs, the last lines of logs, a look whether
the cluster answers.

Rows in the database say who works on what, so any number of processes may.
"""

from __future__ import annotations

import threading

from jobs.bulk.worker import Worker
from jobs.logs import tails
from portal.maintenance.worker import Worker as DrainWorker
from portal.parts import Run, keep_running
from portal.reach import reach

_stop = threading.Event()


def runs() -> dict[str, Run]:
    """The chores by name."""
    return {"bulk": Worker().run, "drains": DrainWorker().run, "log tails": tails.run, "reach": reach.run}


def begin() -> None:
    """Work in threads of this process; returns at once."""
    _stop.clear()
    for name, run in runs().items():
        threading.Thread(target=keep_running, args=(name, run, _stop), name=name, daemon=True).start()


def end() -> None:
    """Stop after what is under way."""
    _stop.set()
