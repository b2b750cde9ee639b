"""The heatmap's topic: the whole fleet for a page that comes, unless it has it; then the GPUs that changed."""

import asyncio

import pytest
from channels.db import database_sync_to_async

from cluster import compact, queries
from cluster.projection import Batch, project_nodes
from jobs.projection import project_jobs, project_pods
from portal.live.fleet import FleetTopic, NodePanel
from portal.live.publisher import GATHER
from tests.portal import objects as make

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.services, pytest.mark.asyncio]

jobs = database_sync_to_async(lambda *found, **more: project_jobs(Batch(list(found), **more)))
pods = database_sync_to_async(lambda *found: project_pods(Batch(list(found))))
nodes = database_sync_to_async(lambda *found, **more: project_nodes(Batch(list(found), **more)))
encoded = database_sync_to_async(lambda user: compact.encoded(queries.fleet(user)))


@pytest.fixture
async def ada(make_user):
    return await database_sync_to_async(make_user)()


async def came(open_page, user, **more):
    await asyncio.sleep(2 * GATHER)  # what was made before is told before
    page = await open_page(user)
    assert await page.connect()
    await page.ask(topic="fleet", **more)
    return page, await page.hear()


async def test_a_page_gets_the_whole_fleet_in_its_compact_shape(open_page, ada):
    await nodes(make.node(gpus=4))
    _page, first = await came(open_page, ada, uids=["="])
    assert (first["type"], first["changed"], first["gone"]) == ("snapshot", [], [])
    assert first["fleet"]["cells"]["state"] == "f4"
    assert first["digest"] == (await encoded(ada))[1]


async def test_a_page_that_has_the_fleet_is_told_so_and_no_more(open_page, ada):
    await nodes(make.node(gpus=4))
    _page, first = await came(open_page, ada, uids=["=" + (await encoded(ada))[1]])
    assert first["same"] is True
    assert "fleet" not in first
    _page, other = await came(open_page, ada, uids=["=0123"])
    assert "same" not in other
    assert other["fleet"]["nodes"]["name"] == ["gpu-01"]


async def test_then_only_gpus_that_changed_are_told(open_page, ada):
    await nodes(make.node(gpus=4))
    await jobs(make.job())
    page, _first = await came(open_page, ada, uids=["="])
    await pods(make.pod("w-0", nodeName="gpu-01", phase="Running"))
    (row,) = (await page.hear())["changed"]
    assert [gpu["state"] for gpu in row["gpus"]] == ["allocated", "free", "free", "allocated"]  # nobody was told before
    await pods(make.pod("w-0", version=2, nodeName="gpu-01", phase="Succeeded"))
    (row,) = (await page.hear())["changed"]
    assert [(gpu["index"], gpu["state"]) for gpu in row["gpus"]] == [(0, "free"), (3, "free")]


async def test_a_page_that_was_away_for_a_moment_gets_what_it_missed(open_page, ada):
    await nodes(make.node(gpus=4))
    await jobs(make.job())
    keeper, _ = await came(open_page, ada, uids=["="])
    page, first = await came(open_page, ada, uids=["="])
    await page.disconnect()
    await pods(make.pod("w-0", nodeName="gpu-01", phase="Running"))
    await keeper.hear()
    _again, late = await came(open_page, ada, uids=["="], seq=first["seq"])
    assert late["type"] == "delta"
    assert [gpu["state"] for gpu in late["changed"][0]["gpus"]] == ["allocated", "free", "free", "allocated"]


async def test_a_machine_that_is_gone_is_told_by_name(open_page, ada):
    await nodes(make.node(gpus=4))
    page, _first = await came(open_page, ada, uids=["="])
    await nodes(gone={"uid-gpu-01"})
    heard = await page.hear()
    assert heard["gone"] == ["gpu-01"]


async def test_when_anything_may_have_changed_the_fleet_is_told_whole(ada):
    await nodes(make.node(gpus=4))
    topic = FleetTopic()
    answer = await database_sync_to_async(topic.delta)(ada, {"=abc", "gpu-01"})
    assert set(answer.extras) == {"fleet", "digest"}
    assert topic.gone({"=abc", "gpu-01"}, {}) == ["gpu-01"]


async def test_what_a_page_saw_alone_is_told_to_all(ada):
    """A page came while a GPU was held for a moment; that it is free again is told, though nobody else knew otherwise."""
    await nodes(make.node(gpus=4))
    await jobs(make.job())
    topic = FleetTopic()
    delta, load = database_sync_to_async(topic.delta), database_sync_to_async(topic.load)
    assert (await delta(ada, {"gpu-01"})).rows  # everybody knows four free GPUs
    assert not (await delta(ada, {"gpu-01"})).rows
    await pods(make.pod("w-0", nodeName="gpu-01", phase="Running"))
    await load(ada, {"="})
    await pods(make.pod("w-0", version=2, nodeName="gpu-01", phase="Succeeded"))
    (row,) = (await delta(ada, {"gpu-01"})).rows.values()
    assert [gpu["state"] for gpu in row["gpus"]] == ["free"] * 4


async def test_who_may_not_see_nodes_hears_nothing(open_page, ada, monkeypatch):
    monkeypatch.setattr("portal.policy.StaffPolicy.may", lambda self, user, action, obj=None: action != "nodes.view")
    _page, answer = await came(open_page, ada, uids=["="])
    assert answer["type"] == "error"


async def test_notices_of_other_topics_are_not_its(ada):
    assert FleetTopic().touched("jobs", {"a"}) == ()
    assert FleetTopic().touched("topology", {"n"}) == {"n"}


async def test_the_node_at_the_side_is_told_as_it_is_drawn_in_every_language(open_page, ada):
    await nodes(make.node(gpus=4))
    await jobs(make.job())
    await asyncio.sleep(2 * GATHER)
    page = await open_page(ada)
    assert await page.connect()
    await page.ask(topic="panel:gpu-01", uids=["gpu-01"])
    (row,) = (await page.hear())["changed"]
    assert set(row["html"]) == {"en", "zh-hans"}
    assert row["html"]["en"].count("data-gpu=") == 4
    await pods(make.pod("w-0", nodeName="gpu-01", phase="Running"))
    (row,) = (await page.hear())["changed"]
    assert "Allocated" in row["html"]["en"]
    assert "已分配" in row["html"]["zh-hans"]


async def test_of_a_node_that_is_not_there_nothing_is_told(ada):
    topic = NodePanel("gone")
    assert (await database_sync_to_async(topic.load)(ada, None)).rows == {}
    assert topic.touched("topology", {"other"}) == ()
    assert topic.touched("jobs", None) == ()
