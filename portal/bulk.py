"""Actions on many jobs, where each web process of a Kubernetes cluster takes its part: a lease says who works on which."""

from __future__ import annotations

import threading

from jobs.bulk.worker import Worker
from portal.parts import keep_running

_stop = threading.Event()


def begin() -> None:
    """Work on what is begun, in a thread of this process; returns at once."""
    _stop.clear()
    threading.Thread(target=keep_running, args=("bulk", Worker().run, _stop), name="bulk", daemon=True).start()


def end() -> None:
    """Stop after the jobs that are under way."""
    _stop.set()
