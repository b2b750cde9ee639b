"""Pages of queues cost the same number of queries however many queues there are; the number of each is kept in a file.

`BASALT_QUERY_COUNTS=write` writes it anew; look at what changed in it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cluster import runtime
from cluster.models import Node
from jobs.models import Pod
from queues.models import Queue, QueueSample, SampleTime
from testbed.many_queues import make_queues

pytestmark = pytest.mark.django_db(databases=["default", "cluster"])
BASELINE = Path(__file__).with_name("query_counts_queues.json")


@pytest.fixture
def member(client, make_user):
    client.force_login(make_user("mia"), "django.contrib.auth.backends.ModelBackend")
    return client


PATHS = (
    "/queues/", "/queues/?resource=cpu", "/queues/?resource=models", "/queues/?q=queue-1", "/queues/?window=24h", "/queues/root/",
    "/queues/fairness/", "/api/v1/fairness", "/api/v1/queue-shares", "/api/v1/queue-history",
)  # fmt: skip


def test_two_hundred_queues_take_as_many_queries_as_the_baseline_says_and_as_twenty(member):
    def counted(queues):
        for model in (Queue, Node, Pod, QueueSample, SampleTime):
            model.objects.all().delete()
        cache.clear()
        make_queues(queues, runtime.now(), nodes=6)
        found = {}
        for path in (*PATHS, "/queues/?at=" + SampleTime.objects.last().at.strftime("%Y-%m-%dT%H:%M:%SZ")):
            member.get(path)
            with CaptureQueriesContext(connection) as captured:
                assert member.get(path).status_code == 200
            found[path.partition("at=")[0]] = len(captured)
        return found

    many = counted(200)
    assert many == counted(20)
    if os.environ.get("BASALT_QUERY_COUNTS") == "write":
        BASELINE.write_text(json.dumps(many, indent=2) + "\n")
    assert many == json.loads(BASELINE.read_text())
    assert max(many.values()) <= 20, many
