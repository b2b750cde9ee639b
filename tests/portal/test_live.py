"""The live channel: who hears what, in which order, and how a page that was away catches up."""

import asyncio
import threading
import time

import pytest
from channels.db import database_sync_to_async
from django.contrib.sessions.models import Session
from knox.models import AuthToken

from cluster.projection import Batch, notify, project_events, project_nodes
from jobs.models import Job
from jobs.projection import project_jobs, project_pod_groups, project_pods
from portal.live import consumer, feed, topics
from portal.live.feed import Feed
from portal.live.hub import hub
from portal.live.publisher import GATHER
from portal.live.told import Told
from portal.live.topics import JobsTopic, TopologyTopic
from queues.projection import project as project_queues
from tests.portal import objects as make

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.services, pytest.mark.asyncio]

jobs = database_sync_to_async(lambda *found, **more: project_jobs(Batch(list(found), **more)))
pods = database_sync_to_async(lambda *found: project_pods(Batch(list(found))))


@pytest.fixture
async def ada(make_user):
    return await database_sync_to_async(make_user)()


async def subscribed(open_page, user, topic, **more):
    await asyncio.sleep(2 * GATHER)  # what was made before is told before
    page = await open_page(user)
    assert await page.connect()
    await page.ask(topic=topic, **more)
    return page, await page.hear()


async def test_nobody_signed_in_is_told_so_and_closed(open_page):
    page = await open_page()
    await page.connect()
    assert (await page.receive_output())["code"] == consumer.SIGNED_OUT


async def test_another_sites_page_gets_no_connection(open_page, ada):
    page = await open_page(ada, origin="https://evil.example")
    assert not await page.connect()


async def test_a_snapshot_of_what_is_shown_then_deltas_numbered_one_by_one(open_page, ada):
    await jobs(make.job())
    page, first = await subscribed(open_page, ada, "jobs", uids=["uid-train", "uid-never"], seq=None)
    assert (first["type"], first["topic"]) == ("snapshot", "jobs")
    assert [row["phase"] for row in first["changed"]] == ["Pending"]
    assert first["gone"] == ["uid-never"]
    await jobs(make.job(version=2, phase="Running", seconds=4))
    second = await page.hear()
    assert (second["type"], second["seq"]) == ("delta", first["seq"] + 1)
    assert second["changed"][0]["phase"] == "Running"
    await jobs(deletes=[make.job(version=3)])
    third = await page.hear()
    assert (third["seq"], third["gone"], third["changed"]) == (first["seq"] + 2, ["uid-train"], [])


async def test_many_changes_are_few_deltas_with_the_last_state_no_oftener_than_the_topics_interval(open_page, ada):
    page, first = await subscribed(open_page, ada, "jobs", uids=[], seq=None)
    began = time.monotonic()
    for version in range(1, 8):
        await jobs(make.job(version=version, phase="Running" if version == 7 else "Pending"))
    heard = [await page.hear()]
    while heard[-1]["changed"][0]["phase"] != "Running":
        heard.append(await page.hear())
    assert len(heard) <= 2 + (time.monotonic() - began) / JobsTopic.interval
    assert [message["seq"] for message in heard] == [first["seq"] + 1 + i for i in range(len(heard))]
    if not await page.receive_nothing(0.5):  # the last change was loaded before the news of it came: it says the same again
        assert (await page.hear())["changed"] == heard[-1]["changed"]
        assert await page.receive_nothing(0.5)


async def test_a_page_that_was_away_gets_what_it_missed(open_page, ada):
    await jobs(make.job("a"), make.job("b"))
    page, first = await subscribed(open_page, ada, "jobs", uids=["uid-a", "uid-b"], seq=None)
    other, _ = await subscribed(open_page, ada, "jobs", uids=[], seq=None)
    await page.disconnect()
    await jobs(make.job("b", version=2, phase="Running"))
    await other.hear()
    _, caught_up = await subscribed(open_page, ada, "jobs", uids=["uid-a", "uid-b"], seq=first["seq"])
    assert (caught_up["type"], [row["name"] for row in caught_up["changed"]]) == ("delta", ["b"])
    assert caught_up["seq"] == first["seq"] + 1


async def test_who_was_away_for_a_moment_hears_the_same_again_and_nothing_is_loaded(open_page, ada, monkeypatch):
    await jobs(make.job("a"))
    page, first = await subscribed(open_page, ada, "jobs", uids=["uid-a"], seq=None)
    other, _ = await subscribed(open_page, ada, "jobs", uids=[], seq=None)
    await page.disconnect()
    told = []
    for version in (2, 3):
        await jobs(make.job("a", version=version, seconds=version))
        told.append(await other.hear())
    monkeypatch.setattr(JobsTopic, "load", lambda *_: pytest.fail("loaded"))
    page, again = await subscribed(open_page, ada, "jobs", uids=["uid-a"], seq=first["seq"])
    assert [again, await page.hear()] == told
    _, nothing = await subscribed(open_page, ada, "jobs", uids=["uid-a"], seq=told[-1]["seq"])
    assert (nothing["type"], nothing["seq"], nothing["changed"]) == ("delta", told[-1]["seq"], [])


async def test_a_number_that_is_not_ours_gets_a_snapshot(open_page, ada):
    await jobs(make.job("a"))
    for seq in (1, 2**52):
        _, first = await subscribed(open_page, ada, "jobs", uids=["uid-a"], seq=seq)
        assert (first["type"], len(first["changed"])) == ("snapshot", 1)


async def test_a_lost_notice_is_noticed_and_made_good(open_page, ada):
    await jobs(make.job("a"))
    page, _ = await subscribed(open_page, ada, "jobs", uids=["uid-a"], seq=None)
    notice = {"type": "live.notice", "publisher": "p", "number": 1, "topics": {}}
    hub()._take(notice)
    hub()._take(notice | {"number": 3})
    again = await page.hear()
    assert ([row["name"] for row in again["changed"]], again["more"]) == (["a"], 1)


async def test_one_jobs_page_hears_only_what_changed_of_its_pods(open_page, ada):
    await jobs(make.job())
    await pods(make.pod("w-0"), make.pod("w-1"))
    page, first = await subscribed(open_page, ada, "job:uid-train")
    assert {pod["name"] for pod in first["pods"]} == {"w-0", "w-1"}
    await pods(make.pod("w-1", version=2, phase="Running"))
    await page.hear()
    await pods(make.pod("w-0", version=3, phase="Running"))
    third = await page.hear()
    assert [(pod["name"], pod["phase"]) for pod in third["pods"]] == [("w-0", "Running")]


async def test_a_jobs_page_hears_of_its_gang(open_page, ada):
    await jobs(make.job())
    await database_sync_to_async(project_pod_groups)(Batch([make.pod_group()]))
    page, _first = await subscribed(open_page, ada, "job:uid-train")
    told = make.event("uid-train-uid-train", "PodGroup", reason="Unschedulable")
    await database_sync_to_async(project_events)(Batch([told]))
    heard = await page.hear()
    assert [event["reason"] for event in heard["events"]] == ["Unschedulable"]


async def test_a_jobs_page_gets_the_whole_panel_when_its_verdict_changes(open_page, ada):
    await jobs(make.job())
    page, first = await subscribed(open_page, ada, "job:uid-train")
    assert set(first["why"][0]["html"].values()) == {""}
    verdict = {"stage": "queue_limit", "code": "queue.closed", "queue": "default"}
    await database_sync_to_async(Job.objects.update)(verdict=verdict, verdict_stage="queue_limit")
    await database_sync_to_async(notify)("jobs", ["uid-train"])
    html = (await page.hear())["why"][0]["html"]
    assert "Queue default is closed" in html["en"]
    assert "\u961f\u5217 default" in html["zh-hans"]
    await database_sync_to_async(notify)("jobs", ["uid-train"])
    assert (await page.hear())["why"] == []


async def test_a_jobs_page_gets_the_parts_that_changed_and_no_others(open_page, ada):
    await jobs(make.job())
    page, first = await subscribed(open_page, ada, "job:uid-train")
    every = {"age", "asks", "legend", "timeline", "conditions", "taskgraph", "evictions"}
    assert {part["uid"] for part in first["parts"]} == every
    await database_sync_to_async(notify)("jobs", ["uid-train"])
    await page.hear()
    await jobs(make.job(version=2, phase="Running", seconds=30))
    heard = {part["uid"]: part["html"] for part in (await page.hear())["parts"]}
    assert set(heard) == {"age", "legend", "timeline", "conditions"}
    assert "Running" in heard["legend"]["en"]
    assert "Running" in heard["conditions"]["en"]
    await database_sync_to_async(notify)("jobs", ["uid-train"])
    assert (await page.hear())["parts"] == []


async def test_queues_and_gpus_are_told_by_name(open_page, ada):
    await database_sync_to_async(project_queues)(Batch([make.queue()]))
    await database_sync_to_async(project_nodes)(Batch([make.node(gpus=4)]))
    page, first = await subscribed(open_page, ada, "queues")
    assert [row["name"] for row in first["changed"]] == ["default"]
    await page.ask(topic="topology")
    grid = await page.hear("topology")
    assert [slot["state"] for slot in grid["changed"][0]["gpus"]] == ["free"] * 4
    await jobs(make.job())
    await pods(make.pod("w-0", nodeName="gpu-01", phase="Running"))
    grid = await page.hear("topology")
    assert [slot["state"] for slot in grid["changed"][0]["gpus"]] == ["allocated", "free", "free", "allocated"]
    assert grid["changed"][0]["gpus"][0]["job"] == "default/train"


async def test_of_a_machine_those_gpus_are_told_that_changed(open_page, ada):
    await database_sync_to_async(project_nodes)(Batch([make.node(gpus=4)]))
    await jobs(make.job())
    await pods(make.pod("w-0", nodeName="gpu-01", phase="Running"))  # holds 0 and 3
    page, first = await subscribed(open_page, ada, "topology")
    assert len(first["changed"][0]["gpus"]) == 4
    await pods(make.pod("w-0", version=2, nodeName="gpu-01", phase="Running"))
    await page.hear()  # nothing was told before: whole machines
    await pods(make.pod("w-0", version=3, nodeName="gpu-01", phase="Succeeded"))
    (row,) = (await page.hear())["changed"]
    assert [(slot["index"], slot["state"]) for slot in row["gpus"]] == [(0, "free"), (3, "free")]
    await database_sync_to_async(notify)("topology", ["gpu-01"])
    unchanged = await page.hear()
    assert (unchanged["changed"], unchanged["gone"]) == ([], [])
    await database_sync_to_async(project_nodes)(Batch(deletes=[make.node(gpus=4, version=9)]))
    assert (await page.hear())["gone"] == ["gpu-01"]


async def test_what_a_page_was_told_alone_is_told_to_all_even_when_it_is_over():
    told = Told()
    told.tell({"a": 1, "b": 1}, told.begin())
    told.saw({"a": 2, "b": 1})  # a page came while a was 2
    doubted = told.begin()
    assert doubted == {"a"}
    assert told.tell({"a": 1, "b": 1}, doubted) == {"a": None, "b": 1}
    assert told.begin() == frozenset()


async def test_pages_of_equal_rights_that_come_together_are_loaded_for_once(open_page, ada, monkeypatch):
    loads = []
    real = JobsTopic.load
    monkeypatch.setattr(JobsTopic, "load", lambda self, user, uids: loads.append(uids) or real(self, user, uids))
    await jobs(make.job("a"), make.job("b"))
    await asyncio.sleep(2 * GATHER)
    pages = [await open_page(ada) for _ in range(5)]
    for page in pages:
        await page.connect()
        await page.ask(topic="jobs", uids=["uid-a"])
    heard = [await page.hear() for page in pages]
    assert [[row["name"] for row in message["changed"]] for message in heard] == [["a"]] * 5
    assert loads == [{"uid-a"}]


async def test_a_page_that_comes_while_a_delta_is_loaded_gets_it_too(open_page, ada, monkeypatch):
    """Its snapshot may be of before what the delta saw, and the next delta would leave that out."""
    gate, real = threading.Event(), TopologyTopic.delta
    monkeypatch.setattr(TopologyTopic, "delta", lambda self, user, uids: gate.wait(5) and real(self, user, uids))
    await database_sync_to_async(project_nodes)(Batch([make.node(gpus=4)]))
    page, first = await subscribed(open_page, ada, "topology")
    await database_sync_to_async(notify)("topology", ["gpu-01"])
    while hub()._feeds["topology"].seq == first["seq"]:
        await asyncio.sleep(0.01)
    late, snapshot = await subscribed(open_page, ada, "topology")
    assert snapshot["seq"] == first["seq"]
    gate.set()
    assert [(await one.hear())["seq"] for one in (page, late)] == [first["seq"] + 1] * 2


async def test_who_missed_very_much_gets_what_it_shows_and_the_number_of_the_rest(open_page, ada, monkeypatch):
    monkeypatch.setattr(feed, "CAP", 5)
    await jobs(*(make.job(str(i)) for i in range(20)))
    page, first = await subscribed(open_page, ada, "jobs", uids=["uid-3"])
    _other = await subscribed(open_page, ada, "jobs", uids=[])
    await page.disconnect()
    await jobs(*(make.job(str(i), version=2, phase="Running") for i in range(20)))
    await _other[0].hear()
    _, caught_up = await subscribed(open_page, ada, "jobs", uids=["uid-3"], seq=first["seq"])
    assert ([row["name"] for row in caught_up["changed"]], caught_up["more"]) == (["3"], 19)


@pytest.mark.parametrize("name", ["uid-train", "9" * 30, "-1", "٣"])
async def test_cycles_that_there_cannot_be_are_gone(open_page, ada, name):
    _, first = await subscribed(open_page, ada, "scheduler", uids=[name], seq=None)
    assert (first["type"], first["changed"], first["gone"]) == ("snapshot", [], [name])


async def test_a_session_that_ends_closes_its_pages(open_page, ada, monkeypatch):
    monkeypatch.setattr(consumer, "CHECK", 0.1)
    page, _ = await subscribed(open_page, ada, "jobs", uids=[])
    await database_sync_to_async(Session.objects.all().delete)()
    assert (await page.receive_output(3))["code"] == consumer.SIGNED_OUT


async def test_a_program_comes_with_its_token(open_page, ada):
    await jobs(make.job())
    token = (await database_sync_to_async(AuthToken.objects.create)(ada))[1]
    program = await open_page(token=token)
    assert await program.connect()
    await program.ask(topic="jobs", uids=["uid-train"])
    assert [row["name"] for row in (await program.hear())["changed"]] == ["train"]


async def test_a_token_that_is_taken_back_closes_its_sockets(open_page, ada, monkeypatch):
    monkeypatch.setattr(consumer, "CHECK", 0.1)
    token = (await database_sync_to_async(AuthToken.objects.create)(ada))[1]
    program = await open_page(token=token)
    assert await program.connect()
    await database_sync_to_async(AuthToken.objects.all().delete)()
    assert (await program.receive_output(3))["code"] == consumer.SIGNED_OUT


@pytest.mark.parametrize("token", ["bslt_nonsense", "x"])
async def test_a_token_that_is_none_is_refused_even_beside_a_session(open_page, ada, token):
    program = await open_page(ada, token=token)
    await program.connect()
    assert (await program.receive_output(3))["code"] == consumer.SIGNED_OUT


async def test_nonsense_is_answered_with_what_would_be_right(open_page, ada):
    page = await open_page(ada)
    await page.connect()
    for text in (
        "{",
        "[]",
        '{"op": "subscribe"}',
        '{"op":"subscribe","topic":"jobs","uids":[1]}',
        '{"op":"subscribe","topic":"x"}',
    ):
        await page.say(text)
        assert (await page.hear())["type"] == "error"
    await page.ask("ping")
    assert await page.hear() == {"type": "pong"}


async def test_a_slow_browser_is_dropped_to_snapshots(open_page, ada, monkeypatch):
    await jobs(make.job("a"))
    page, first = await subscribed(open_page, ada, "jobs", uids=["uid-a"])
    (socket,) = hub()._feeds["jobs"].subscriptions
    for _ in range(consumer.QUEUE * 2):
        socket.offer("jobs", '{"seq": 0}')
    heard = await page.hear()
    while heard["seq"] == 0:
        heard = await page.hear()
    assert (heard["type"], heard["seq"], len(heard["changed"])) == ("snapshot", first["seq"], 1)


async def test_a_flood_is_cut_to_what_each_page_shows(open_page, ada, monkeypatch):
    monkeypatch.setattr(feed, "CAP", 5)
    page, _ = await subscribed(open_page, ada, "jobs", uids=["uid-3"])
    await jobs(*(make.job(str(i)) for i in range(20)))
    delta = await page.hear()
    assert ([row["name"] for row in delta["changed"]], delta["more"]) == (["3"], 19)


async def test_messages_that_overtake_the_first_answer_wait_for_it():
    class Recorder:
        user = None

        def __init__(self):
            self.heard = []

        def offer(self, topic, text):
            self.heard.append(text)

    from portal.live.feed import Subscription
    from portal.live.topics import Answer

    socket, topic = Recorder(), Feed("jobs", JobsTopic())
    topic.subscriptions[socket] = Subscription(frozenset())
    base = topic.seq
    topic.note("jobs", ["x"])
    asked = topic.take()
    topic.send_delta("all", [socket], asked, Answer())
    assert socket.heard == []
    topic.answer(socket, base, "first")
    assert [text == "first" for text in socket.heard] == [True, False]


async def test_a_job_of_very_many_pods_sends_the_newest_changes_and_then_only_what_changes(open_page, ada, monkeypatch):
    monkeypatch.setattr(topics, "SNAPSHOT_PODS", 2)
    await jobs(make.job())
    await pods(*(make.pod(f"w-{i}", version=i + 1) for i in range(6)))
    page, first = await subscribed(open_page, ada, "job:uid-train")
    assert ({pod["name"] for pod in first["pods"]}, first["pods_total"]) == ({"w-4", "w-5"}, 6)
    _, named = await subscribed(open_page, ada, "job:uid-train", uids=["uid-train", "uid-w-0"])
    assert ([pod["name"] for pod in named["pods"]], named["gone"]) == (["w-0"], [])
    await pods(make.pod("w-1", version=9, phase="Running"))
    later = await page.hear()
    assert ([pod["name"] for pod in later["pods"]], later["gone"]) == (["w-1"], [])


async def test_a_delta_of_a_job_reads_the_pods_that_changed_and_no_others(open_page, ada, monkeypatch):
    drawn = []
    monkeypatch.setattr(topics, "pod_row", lambda pod: drawn.append(pod.name) or {"uid": pod.uid, "name": pod.name})
    await jobs(make.job())
    await pods(*(make.pod(f"w-{i}") for i in range(6)))
    page, _first = await subscribed(open_page, ada, "job:uid-train")
    drawn.clear()
    await pods(make.pod("w-3", version=2, phase="Running"))
    await page.hear()
    assert drawn == ["w-3"]


@pytest.mark.parametrize(
    "asked",
    [{"topic": "job:a\x00b"}, {"topic": "x" * 101}, {"topic": "jobs", "uids": ["a\x00"]}, {"topic": "jobs", "uids": ["x" * 101]}],
)
async def test_names_that_no_row_can_have_are_refused_in_words(open_page, ada, asked):
    _, heard = await subscribed(open_page, ada, **asked)
    assert (heard["type"], "100 characters and no NUL" in heard["detail"]) == ("error", True)
