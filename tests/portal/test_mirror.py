"""The mirror: what the cluster says reaches the database, and what happened while nobody watched does too."""

import threading
import time

import pytest
from django.db import OperationalError

from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import JOB, NODE, QUEUE
from cluster.models import Node
from cluster.projection import Batch, Projection, refused
from jobs.models import Job
from jobs.projection import PROJECTIONS as JOBS
from portal import mirror as module
from portal.mirror import Mirror, persist
from queues.models import Queue
from tests.portal import objects as make

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.services]


def without_system_fields(obj):
    return {**obj, "metadata": {"name": obj["metadata"]["name"], "namespace": obj["metadata"].get("namespace", "")}}


@pytest.fixture
def cluster():
    found = EmbeddedCluster()
    for name in ("root", "default"):
        found.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1}})
    return found


class Running:
    """A mirror in a thread."""

    def __init__(self, cluster):
        self.mirror, self.stop = Mirror(cluster), threading.Event()
        self.thread = threading.Thread(target=self.mirror.run, args=(self.stop,))

    def __enter__(self):
        self.thread.start()
        assert self.mirror.synced.wait(10)
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(10)
        assert not self.thread.is_alive()


def soon(condition):
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def submit(cluster, name):
    return cluster.create(JOB, without_system_fields(make.job(name)))


def test_changes_arrive(cluster):
    with Running(cluster):
        submit(cluster, "a")
        soon(lambda: Job.objects.filter(name="a", phase="Pending").exists())
        cluster.patch_status(JOB, "a", "default", {"state": {"phase": "Running", "lastTransitionTime": make.STAMP.format(9)}})
        soon(lambda: Job.objects.filter(name="a", phase="Running").exists())
        cluster.delete(JOB, "a", "default")
        soon(lambda: Job.objects.filter(name="a").exclude(deleted_at=None).exists())
    assert Queue.objects.filter(deleted_at=None).count() == 2


def test_what_happened_while_it_was_down_is_made_good(cluster):
    with Running(cluster):
        for name in ("stays", "goes", "changes"):
            submit(cluster, name)
        soon(lambda: Job.objects.count() == 3)
    cluster.delete(JOB, "goes", "default")
    cluster.patch_status(JOB, "changes", "default", {"state": {"phase": "Failed", "lastTransitionTime": make.STAMP.format(9)}})
    submit(cluster, "new")
    with Running(cluster):
        alive = {row.name: row.phase for row in Job.objects.filter(deleted_at=None)}
    assert alive == {"stays": "Pending", "changes": "Failed", "new": "Pending"}
    assert Job.objects.get(name="goes").deleted_at is not None


def test_a_bad_object_stops_nobody(cluster, monkeypatch):
    """Whatever a projection cannot read, though admission let it in."""
    nodes = module.PROJECTIONS[NODE]

    def strict(batch):
        if any(obj["metadata"]["name"] == "bad" for obj in batch.upserts):
            raise ValueError("no such node")
        nodes.project(batch)

    monkeypatch.setitem(module.PROJECTIONS, NODE, Projection(nodes.model, strict))
    before = refused.get("Node", 0)
    node = make.node()
    cluster.create(NODE, {**node, "metadata": {"name": "bad"}})
    cluster.create(NODE, {**node, "metadata": {"name": "good"}})
    with Running(cluster):
        submit(cluster, "after")
        soon(lambda: Job.objects.filter(name="after").exists() and Node.objects.filter(name="good").exists())
        soon(lambda: refused.get("Node", 0) == before + 1)
    assert not Node.objects.filter(name="bad").exists()


def test_what_the_database_refuses_is_tried_one_by_one(monkeypatch):
    good, bad = make.job("good"), make.job("bad")
    real = JOBS[JOB]

    def picky(batch):
        if any(obj["metadata"]["name"] == "bad" for obj in batch.upserts):
            raise OverflowError("too large for the database")
        real.project(batch)

    monkeypatch.setitem(module.PROJECTIONS, JOB, Projection(real.model, picky))
    persist(JOB, Batch([bad, good]), threading.Event())
    assert [row.name for row in Job.objects.all()] == ["good"]


def test_a_database_that_is_away_for_a_while_loses_nothing(monkeypatch):
    real, failures = JOBS[JOB], [OperationalError("locked"), OperationalError("locked")]

    def flaky(batch):
        if failures:
            raise failures.pop()
        real.project(batch)

    monkeypatch.setitem(module.PROJECTIONS, JOB, Projection(real.model, flaky))
    persist(JOB, Batch([make.job()]), threading.Event())
    assert Job.objects.count() == 1
