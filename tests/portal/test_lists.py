"""Lists cost the same number of queries however much there is. The number of each page is kept in a file, from which none drifts.

`BASALT_QUERY_COUNTS=write python -m pytest tests/portal/test_lists.py` writes the file anew; look at what changed in it.
"""

import json
import os
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs.models import Job
from testbed.many_jobs import make_jobs

pytestmark = pytest.mark.django_db

BASELINE = Path(__file__).with_name("query_counts.json")

PAGES = [
    "/",
    "/jobs/?view=all",
    "/jobs/?state=pending&state=inqueue&sort=since",
    "/jobs/?q=1&queue=queue-1&sort=-gpus",
    "/jobs/?label=app=web,!old&submitted=7d",
    "/jobs/?sort=-finished&page=2",
    "/jobs/?columns=name,labels,priority,cpu,memory,retries,started,finished",
    "/jobs/?group=queue",
    "/jobs/?group=state&state=pending",
    "/jobs/views/",
    "/jobs/bulk/",
    "/queues/",
    "/gpus/",
    "/nodes/",
    "/api/v1/jobs",
    "/api/v1/jobs?phase=Pending&ordering=-gpus",
    "/api/v1/queues",
    "/api/v1/pods",
    "/api/v1/events",
]


@pytest.fixture
def client(make_user):
    client = Client()
    client.force_login(make_user("ada", staff=True), "django.contrib.auth.backends.ModelBackend")
    return client


def queries(client, path):
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    return [query["sql"] for query in captured.captured_queries]


def test_ten_thousand_jobs_take_as_many_queries_as_the_baseline_says_and_as_sixty(client):
    make_jobs(60)
    for path in PAGES:
        client.get(path)
    few = {path: len(queries(client, path)) for path in PAGES}
    Job.objects.all().delete()
    make_jobs(10_000)
    many = {path: len(queries(client, path)) for path in PAGES}
    assert many == few
    if os.environ.get("BASALT_QUERY_COUNTS") == "write":
        BASELINE.write_text(json.dumps(many, indent=2) + "\n")
    assert many == json.loads(BASELINE.read_text())
    assert max(many.values()) <= 25, many


def test_lists_never_load_whole_manifests(client):
    make_jobs(50)
    for path in ("/jobs/", "/jobs/?group=owner", "/api/v1/jobs"):
        assert not [sql for sql in queries(client, path) if '"jobs_job"."manifest"' in sql], path
