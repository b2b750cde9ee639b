"""A queue that others are below speaks for all of them: its counts, its links to jobs, its chart."""

from datetime import timedelta

import pytest

from cluster import runtime
from jobs.models import Job
from queues.models import Queue, QueueSample
from tests import factories, fleet_rows
from tests.factories import GPU

pytestmark = pytest.mark.django_db(databases=["default", "cluster"])
BELOW = ("nlp", "speech", "vision")


@pytest.fixture
def queue_page(client, make_user):
    client.force_login(make_user("ivo"), "django.contrib.auth.backends.ModelBackend")
    runtime.use(fleet_rows.demo_cluster())
    fleet_rows.shares(steps=0)
    Queue.objects.filter(name="research").update(groups_pending=0, groups_inqueue=0)
    at = factories.now() - timedelta(minutes=5)
    gpus = {"research": 0, "nlp": 3000, "speech": 4000, "vision": 5000}
    factories.save([QueueSample(queue=name, at=at, allocated={GPU: n}, deserved={GPU: 2 * n}) for name, n in gpus.items()])
    jobs = [factories.job(f"in-{name}", queue=name) for name in (*BELOW, "prod")]
    factories.save(jobs)
    yield lambda name: client.get(f"/queues/{name}/").context
    runtime.use(None)


def test_an_inner_queue_counts_the_jobs_below_it(queue_page):
    shown, children = queue_page("research")["branch"], [queue_page(name)["branch"] for name in BELOW]
    assert (shown.pending, shown.admitted) == (sum(c.pending for c in children), sum(c.admitted for c in children))
    assert shown.waiting == shown.pending + shown.admitted > 0


def test_its_link_leads_to_the_jobs_below_it_and_roots_to_all(queue_page, client):
    def listed(name):
        return {job.name for job in client.get(f"/jobs/?{queue_page(name)['branch'].jobs_query}").context["page"].object_list}

    assert listed("research") == {f"in-{name}" for name in BELOW}
    assert listed("prod") == {"in-prod"}
    assert listed("root") == set(Job.objects.values_list("name", flat=True))


def test_its_chart_adds_up_what_is_below_it(queue_page):
    whole = queue_page("research")["history"]
    assert (whole.resource, whole.series["allocated"], whole.series["deserved"]) == (GPU, [12_000], [24_000])
    assert queue_page("root")["drawn"] == GPU
