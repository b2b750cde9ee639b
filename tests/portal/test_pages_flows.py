"""Pages of flows, templates and cron jobs: what they show, what they offer, what they do."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from cluster import runtime
from cluster.clock import ManualClock
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import CRON_JOB, JOB, JOB_FLOW, JOB_TEMPLATE, QUEUE
from cluster.objects import stamp
from jobs import operations
from jobs.controller import ControllerManager
from jobs.flows.graph import GAP_X, WIDTH, State, draw, layers
from jobs.models import CronJob, Job, JobFlow, JobTemplate
from portal.live import topics
from portal.mirror import Mirror
from tests.jobs.cron.world import cron
from tests.jobs.flows.world import flow, template
from tests.portal.test_api_flows import NOON

pytestmark = [pytest.mark.django_db(databases="__all__")]


class World:
    def __init__(self, make_user: Any) -> None:
        self.clock = ManualClock(NOON)
        self.cluster = EmbeddedCluster(clock=self.clock)
        runtime.use(self.cluster)
        for name in ("root", "default"):
            self.cluster.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1}})
        self.manager, self.mirror = ControllerManager(self.cluster, self.clock), Mirror(self.cluster)
        self.ada, self.bob = make_user("ada"), make_user("bob")

    def make(self, *objects: Any, owner: str = "ada") -> None:
        kinds = {kind.kind: kind for kind in (JOB_FLOW, JOB_TEMPLATE, CRON_JOB)}
        for obj in objects:
            operations.submit_kind(self.cluster, kinds[obj["kind"]], obj, owner=owner)
        self.settle()

    def settle(self) -> None:
        self.manager.settle()
        self.mirror.settle()

    def end(self, job: str, phase: str) -> None:
        state = {"phase": phase, "lastTransitionTime": stamp(self.clock.now())}
        self.cluster.patch_status(JOB, job, "default", {"state": state})
        self.settle()

    def page(self, name: str, *arguments: Any, user: Any = None, query: str = "", language: str = "en") -> str:
        client = Client(headers={"Accept-Language": language})
        client.force_login(user or self.ada, "django.contrib.auth.backends.ModelBackend")
        answer = client.get(reverse(name, args=arguments) + query)
        assert answer.status_code == 200
        return answer.content.decode()

    def do(self, name: str, *arguments: Any, user: Any = None) -> Any:
        client = Client()
        client.force_login(user or self.ada, "django.contrib.auth.backends.ModelBackend")
        answer = client.post(reverse(name, args=arguments))
        self.said = [str(each) for each in get_messages(answer.wsgi_request)]
        self.settle()
        return answer


@pytest.fixture
def world(make_user):
    world = World(make_user)
    yield world
    world.manager.close()
    world.mirror.close()
    runtime.use(None)


@pytest.fixture
def diamond(world: World) -> JobFlow:
    world.make(*(template(name) for name in "abcd"), flow("f", "a", "b<a", "c<a", "d<b,c"))
    return JobFlow.objects.get()


def test_empty_lists_say_what_a_thing_is_and_how_to_make_one(world: World):
    for name, words in (("flows", "No flows yet"), ("templates", "No job templates yet"), ("crons", "No cron jobs yet")):
        page = world.page(f"jobs:{name}")
        assert words in page
        assert "?example=" in page


def test_lists_are_searched_and_say_when_nothing_matches(world: World, diamond: JobFlow):
    assert 'class="name"' in world.page("jobs:flows", query="?q=ada")
    assert "No flow matches" in world.page("jobs:flows", query="?q=zzz")
    assert "No flow matches" in world.page("jobs:flows", query="?state=Failed")
    assert world.page("jobs:templates", query="?q=default").count('class="name"') == 4
    assert "No template matches" in world.page("jobs:templates", query="?q=zzz")


def test_a_flow_is_drawn_with_the_states_of_its_jobs(world: World, diamond: JobFlow):
    world.end("f-a", "Completed")
    page = world.page("jobs:flow", diamond.uid)
    assert "<title>f-a: Completed</title>" in page
    assert "<title>f-b: Pending</title>" in page
    assert "<title>f-d: Waiting</title>" in page
    assert page.count('class="way met"') == 2
    assert "1 of 4 jobs done" in page
    assert reverse("jobs:detail", args=[world.cluster.get(JOB, "f-a", "default")["metadata"]["uid"]]) in page


def test_a_failed_flow_says_which_jobs_were_never_started(world: World, diamond: JobFlow):
    world.end("f-a", "Aborted")
    page = world.page("jobs:flow", diamond.uid)
    assert "<title>f-b: Not started</title>" in page
    assert "f-a is Aborted: no more jobs are started" in page


def test_pages_speak_chinese(world: World, diamond: JobFlow):
    page = world.page("jobs:flow", diamond.uid, language="zh-hans")
    assert "<title>f-d: 等待中</title>" in page


def test_names_are_escaped(world: World):
    client = Client()
    client.force_login(world.ada, "django.contrib.auth.backends.ModelBackend")
    page = client.get(reverse("jobs:flows"), {"q": "<script>alert(1)</script>"}).content.decode()
    assert "<script>alert" not in page


def test_the_owner_deletes_a_flow_after_being_asked(world: World, diamond: JobFlow):
    assert "Delete: f" in world.page("jobs:flow_action", diamond.uid, "delete")
    assert world.do("jobs:flow_action", diamond.uid, "delete", user=world.bob).status_code == 403
    assert world.do("jobs:flow_action", diamond.uid, "delete").status_code == 302
    assert world.cluster.list(JOB_FLOW).items == []
    assert "Deleted" in world.page("jobs:flow", diamond.uid)
    assert "actions/delete" not in world.page("jobs:flow", diamond.uid)


def test_a_template_shows_its_jobs_and_stays_while_it_is_used(world: World, diamond: JobFlow):
    used = JobTemplate.objects.get(name="a")
    assert "f-a" in world.page("jobs:template", used.uid)
    world.do("jobs:template_action", used.uid, "delete")
    assert world.said == [
        "job template default/a is used by flow f, which has not ended: delete the flow first, or wait for its end"
    ]
    assert JobTemplate.objects.get(name="a").deleted_at is None
    assert world.do("jobs:flow_action", diamond.uid, "delete").status_code == 302
    world.do("jobs:template_action", used.uid, "delete")
    assert JobTemplate.objects.get(name="a").deleted_at is not None


def test_a_cron_job_shows_its_next_times_and_its_runs(world: World):
    world.make(cron("0 13 * * *", startingDeadlineSeconds=90))
    made = CronJob.objects.get()
    page = world.page("jobs:cron", made.uid)
    assert "13:00:00" in page
    assert "None yet." in page
    assert "the next one runs beside it" in page
    world.clock.advance(3600)
    world.settle()
    page = world.page("jobs:cron", made.uid)
    assert f"c-{int(world.clock.now()) // 60}" in page
    assert "SuccessfulCreate" in page


def test_a_cron_job_that_is_gone_meanwhile_is_told_of(world: World):
    world.make(cron("0 0 1 1 *"))
    made = CronJob.objects.get()
    world.cluster.delete(CRON_JOB, "c", "default")
    world.do("jobs:cron_action", made.uid, "suspend")
    assert world.said == ["there is no CronJob 'c' in namespace 'default'"]


def test_a_cron_job_is_suspended_resumed_and_run_at_once(world: World):
    world.make(cron("0 0 1 1 *"))
    made = CronJob.objects.get()
    world.do("jobs:cron_action", made.uid, "suspend")
    assert "None while it is suspended." in world.page("jobs:cron", made.uid)
    assert "Suspended" in world.page("jobs:crons")
    world.do("jobs:cron_action", made.uid, "trigger")
    world.do("jobs:cron_action", made.uid, "trigger")
    assert len(world.cluster.list(JOB).items) == 1
    world.do("jobs:cron_action", made.uid, "resume")
    assert world.cluster.get(CRON_JOB, "c", "default")["spec"]["suspend"] is False
    assert world.do("jobs:cron_action", made.uid, "jump").status_code == 404
    assert world.do("jobs:cron_action", made.uid, "trigger", user=world.bob).status_code == 403
    assert world.do("jobs:cron_action", made.uid, "delete").status_code == 302
    assert world.cluster.list(CRON_JOB).items == []


def test_only_who_may_act_is_offered_to(world: World):
    world.make(cron())
    made = CronJob.objects.get()
    assert "Run now" in world.page("jobs:cron", made.uid)
    assert "Run now" not in world.page("jobs:cron", made.uid, user=world.bob)


@pytest.mark.parametrize("example", ["flow", "cron"])
def test_the_editor_begins_with_an_example_that_can_be_applied(world: World, example: str):
    from jobs.submit.examples import EXAMPLES

    assert "sim.basalt.dev/duration" in world.page("jobs:submit", query=f"?example={example}")
    client = Client()
    client.force_login(world.ada, "django.contrib.auth.backends.ModelBackend")
    answer = client.post(reverse("apply"), {"yaml": EXAMPLES[example]})
    assert answer.status_code == 200
    assert len(world.cluster.list(JOB_FLOW if example == "flow" else CRON_JOB).items) == 1


def test_live_rows_and_parts_come_drawn_in_both_languages(world: World, diamond: JobFlow):
    rows = topics.make("flows").load(world.ada, {diamond.uid}).rows
    assert set(rows[diamond.uid]["html"]) == {"en", "zh-hans"}
    one = topics.make(f"flow:{diamond.uid}")
    assert set(one.load(world.ada, None).rows) == {"head", "graph", "jobs", "events"}
    job = world.cluster.get(JOB, "f-a", "default")["metadata"]["uid"]
    assert set(one.touched("jobs", {job})) == {"head", "graph", "jobs", "events"}
    assert set(one.touched("flows", {"other"})) == set()
    assert topics.make("flow:nobody").load(world.ada, None).rows == {}
    world.make(cron())
    made = CronJob.objects.get()
    assert "*/5 * * * *" in topics.make("crons").load(world.ada, {made.uid}).rows[made.uid]["html"]["en"]
    assert set(topics.make(f"cron:{made.uid}").load(world.ada, None).rows) == {"head", "times", "runs", "events"}


def test_a_job_leads_to_what_made_it(world: World, diamond: JobFlow):
    world.make(cron("0 0 1 1 *"))
    made = CronJob.objects.get()
    world.do("jobs:cron_action", made.uid, "trigger")
    for job, page in (
        (Job.objects.get(name="f-a"), ("flow", diamond.uid)),
        (Job.objects.get(made_by=made.uid), ("cron", made.uid)),
    ):
        assert f'href="{reverse(f"jobs:{page[0]}", args=[page[1]])}"' in world.page("jobs:detail", job.uid)


# --- the drawing --------------------------------------------------------------------------------------------------


def test_jobs_stand_in_columns_by_the_longest_way_to_them():
    assert layers({"a": [], "b": ["a"], "c": ["b"], "d": ["b"], "e": ["c", "d"], "z": ["a", "e"]}) == [
        ["a"],
        ["b"],
        ["c", "d"],
        ["e"],
        ["z"],
    ]
    assert layers({"a": [], "b": [], "x": ["b"], "y": ["a"]}) == [["a", "b"], ["y", "x"]]
    assert layers({}) == []
    chain = {str(i): [str(i - 1)] if i else [] for i in reversed(range(1000))}
    assert layers(chain) == [[str(i)] for i in range(1000)]
    assert sorted(name for column in layers({"a": ["b"], "b": ["a"]}) for name in column) == ["a", "b"]


def test_a_line_leads_from_each_target():
    states = {f"f-{name}": State("Completed" if name == "a" else "", "unknown", "") for name in "abc"}
    graph = draw(flow("f", "a", "b<a", "c<a,b"), states, {})
    assert [box.x for box in graph.boxes] == [8, 8 + WIDTH + GAP_X, 8 + 2 * (WIDTH + GAP_X)]
    assert [line.is_met for line in graph.lines] == [True, True, False]
