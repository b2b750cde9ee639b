"""Celery: the workers of production. `celery -A portal.celery worker` is one; any number of them may run, and die.

A task carries no key: it is a bell. Which keys are wanted, and who works them, is in Redis (`jobs.controller.shared`), so a task
that is lost, doubled or late changes nothing.
"""

from __future__ import annotations

import os
import threading
import time

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

import django
from celery import Celery
from celery.schedules import crontab
from celery.signals import heartbeat_sent, worker_ready, worker_shutting_down
from django.apps import apps

if not apps.ready:  # a worker's own process; elsewhere Django stands already
    django.setup()

from django.conf import settings

from cluster.clock import SystemClock
from jobs.controller.base import REST
from jobs.controller.crew import Dispatcher, Worker
from jobs.controller.shared import SharedQueue
from portal import process, services, tidying
from portal.metrics import Making

if not settings.REDIS_URL:
    raise SystemExit("Workers need Redis: set REDIS_URL, such as redis://127.0.0.1:6379/0.")

app = Celery("basalt")
app.config_from_object("django.conf:settings", namespace="CELERY")
# By the clock and not by an interval: a beat that begins anew, with nothing remembered, is not a day late.
app.conf.beat_schedule = {
    "tidy": {"task": "basalt.tidy", "schedule": crontab(hour=3, minute=0), "options": {"expires": 6 * 3600}}
}

SILENT_SECONDS = 60.0
"""A worker of which nothing was heard for so long has failed; it beats every few seconds."""
BELL_SECONDS = 60
"""A bell that nobody heard for so long is forgotten: the dispatcher rings again."""
A_TURN = 2.0
"""Seconds for which one bell keeps a worker at it."""

_lock = threading.Lock()
_worker: Worker | None = None
_beat = 0.0
_stopping = threading.Event()


@app.task(name="basalt.work", ignore_result=True)
def work() -> int:
    """Work keys until none is due, or a turn is over; how many."""
    worker, end, worked = _current(), time.monotonic() + A_TURN, 0
    while not _stopping.is_set() and time.monotonic() < end and worker.work_one():
        worked += 1
    return worked


@app.task(name="basalt.tidy", ignore_result=True)
def tidy() -> None:
    """Delete what the database keeps without need; beat asks for it once a day."""
    tidying.tidy(heard=_stopping.is_set)


@app.task(name="basalt.simulate", ignore_result=True)
def simulate(pk: int) -> None:
    """Work on a simulation that somebody started, until it has a result."""
    from portal.simulations import work as simulations

    simulations.play(pk)


def dispatcher(cluster: object = None) -> Dispatcher:
    """The dispatcher over a cluster of this process, or over the one that the settings name."""
    connection = services.redis()
    queue = SharedQueue(connection)

    def ring(count: int) -> None:
        with app.producer_pool.acquire(block=True) as producer:
            for _ in range(count):
                work.apply_async(expires=BELL_SECONDS, producer=producer)

    def waiting() -> int:
        return int(connection.llen(settings.CELERY_TASK_DEFAULT_QUEUE))

    found = cluster or services.cluster()
    return Dispatcher(found, getattr(found, "clock", None) or SystemClock(), queue, ring, waiting)  # type: ignore[arg-type]


def _current() -> Worker:
    """This process's worker, made for the first bell, after whatever forking there was."""
    global _worker
    with _lock:
        if _worker is None:
            cluster = Making(services.cluster())
            rest = REST if settings.BASALT_CLUSTER == "kubernetes" else 0.0
            made = Worker(cluster, cluster.clock, SharedQueue(services.redis(), rest=rest))
            cluster.informer = lambda: made.informer
            made.start()
            _worker = made
        return _worker


@worker_ready.connect
def _probed(**_: object) -> None:
    """Serve /healthz, /readyz and /metrics at BASALT_WORKER_LISTEN."""
    if settings.BASALT_WORKER_LISTEN:
        _beats()
        process.probes(settings.BASALT_WORKER_LISTEN, _trouble, _trouble)


@heartbeat_sent.connect
def _beats(**_: object) -> None:
    global _beat
    _beat = time.monotonic()


def _trouble() -> str:
    silent = time.monotonic() - _beat
    return f"the worker gave no sign of life for {silent:.0f} s" if silent > SILENT_SECONDS else ""


@worker_shutting_down.connect
def _stop(**_: object) -> None:
    """Take no more keys; the ones under way are finished."""
    _stopping.set()
