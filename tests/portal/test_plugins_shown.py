"""What a job's plugins made, on its page and in its REST answer: kinds and names, and whether they are there."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from cluster import runtime
from cluster.kinds import CONFIG_MAP, JOB, SERVICE
from cluster.projection import Batch
from jobs.models import Job
from portal.mirror import PROJECTIONS
from tests.jobs.world import World, job, task

pytestmark = pytest.mark.django_db(databases="__all__")


@pytest.fixture
def world():
    world = World()
    runtime.use(world.cluster)
    yield world
    runtime.use(None)


@pytest.fixture
def ada(client: Client, make_user):
    client.force_login(make_user("ada"), "django.contrib.auth.backends.ModelBackend")
    return client


def shown(world):
    """The job as it is now, in the database."""
    PROJECTIONS[JOB].project(Batch(world.cluster.list(JOB).items))
    return Job.objects.get()


def made(answer):
    return {
        (plugin["name"], each["kind"], each["name"]): each["state"] for plugin in answer["plugins"] for each in plugin["made"]
    }


def test_what_was_made_is_there_and_is_gone_with_the_end(world, ada):
    world.cluster.create(SERVICE, {"metadata": {"name": "lm"}, "spec": {"clusterIP": "None"}})
    world.cluster.create(JOB, job("lm", task("a", 1), plugins={"ssh": ["--ssh-port=7"], "svc": [], "env": []}))
    world.turn()
    answer = ada.get(f"/api/v1/jobs/{shown(world).uid}").json()
    assert [(plugin["name"], plugin["arguments"]) for plugin in answer["plugins"]] == [
        ("env", []), ("svc", []), ("ssh", ["--ssh-port=7"]),
    ]  # fmt: skip
    assert made(answer) == {
        ("svc", "Service", "lm"): "foreign",
        ("svc", "ConfigMap", "lm-svc"): "there",
        ("svc", "NetworkPolicy", "lm"): "there",
        ("ssh", "Secret", "lm-ssh"): "there",
    }
    page = ada.get(reverse("jobs:detail", args=[answer["uid"]])).content.decode()
    table = re.sub(r"<[^>]+>|\s+", " ", page[page.index('id="h-plugins"') :])
    assert re.search(r"svc .* Service\s+lm\s+\(somebody else’s\)\s+·\s+ConfigMap\s+lm-svc\s+·\s+NetworkPolicy\s+lm", table)
    assert re.search(r"ssh\s+--ssh-port=7\s+Secret\s+lm-ssh", table)

    world.end("lm-a-0")
    world.turn()
    assert set(made(ada.get(f"/api/v1/jobs/{shown(world).uid}").json()).values()) == {"missing", "foreign"}


def test_the_page_says_by_whose_object_a_job_is_held_and_that_it_goes_on(world, ada):
    world.cluster.create(CONFIG_MAP, {"metadata": {"name": "lm-svc"}, "data": {"a": "b"}})
    world.cluster.create(JOB, job("lm", task("a", 1), plugins={"svc": []}))
    world.turn()
    row = shown(world)
    answer = ada.get(f"/api/v1/jobs/{row.uid}").json()
    assert answer["why"]["en"] == "ConfigMap lm-svc belongs to somebody else"
    assert answer["why"]["zh-hans"] == "ConfigMap lm-svc 属于他人"
    page = ada.get(reverse("jobs:detail", args=[row.uid])).content.decode()
    assert "Its list of hosts cannot be written: ConfigMap lm-svc belongs to somebody else." in page
    assert "Submit the job under another name, or remove ConfigMap lm-svc" in page
    assert ada.get("/api/v1/jobs?stage=dependency").json()["results"][0]["name"] == "lm"

    world.cluster.delete(CONFIG_MAP, "lm-svc", "default")
    world.clock.advance(5)
    world.turn()
    assert shown(world).verdict is None
    assert ada.get(f"/api/v1/jobs/{row.uid}").json()["why"]["en"] == ""


def test_a_job_without_plugins_has_no_such_section(world, ada):
    world.cluster.create(JOB, job("lm"))
    page = ada.get(reverse("jobs:detail", args=[shown(world).uid])).content.decode()
    assert "h-plugins" not in page
