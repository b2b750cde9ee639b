"""The map of GPUs as page, table, file and API: the same facts, narrowed by what the viewer may see."""

import csv
import io
import json
from collections import Counter
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from cluster import compact, queries, runtime
from cluster.access import policy
from cluster.cards import STATES, WHOLE, parts_of
from cluster.embedded.store import EmbeddedCluster
from cluster.models import Node
from cluster.projection import Batch, project_nodes
from cluster.workloads import Holder, Share
from jobs.models import Job, Pod
from jobs.projection import project_pods
from portal.policy import StaffPolicy
from scheduler.model import devices
from scheduler.plugins.deviceshare.cards import share_cards, states
from tests import factories, fleet_rows

pytestmark = pytest.mark.django_db(databases=["default", "cluster"])


@pytest.fixture
def cluster(db):
    runtime.use(EmbeddedCluster())
    yield runtime.current()
    runtime.use(None)


@pytest.fixture
def member(client, make_user):
    client.force_login(make_user("ivo"), "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def shared(cluster):
    """A node of two cards that pods share, one of whole cards, a waiting pod, and a job of somebody else."""
    mine, theirs = factories.job("mine", owner="ivo", queue="prod"), factories.job("secret", owner="qiu", queue="veiled")
    vgpu = factories.node("v1", 2, gpu_cards=[["GPU-a", 24_000], ["GPU-b", 24_000]], gpu_memory_mib=24_000, rack="r1", spine="s1")
    whole = factories.node("w1", 4, gpu_memory_mib=81_920, rack="r2", spine="s1")
    pods = [
        *factories.pods(mine, 1, node="v1", gpus=[], cards=[["GPU-a", 6_000, 25]], started_at=factories.now()),
        *factories.pods(theirs, 1, node="v1", gpus=[], cards=[["GPU-a[g1-0]", 12_000, 50]]),
        *factories.pods(theirs, 1, "boss", node="w1", gpus=[0, 1]),
        *factories.pods(mine, 1, "next", node="", gpus=[], nominated="w1", phase="Pending"),
    ]
    factories.save([vgpu, whole], [mine, theirs], pods)
    return mine, theirs


def cells(user, name):
    return next(strip for strip in queries.fleet(user).strips if strip.node.name == name).cells


class _Known:
    is_authenticated = is_active = True
    is_staff = False


def test_shares_whole_cards_and_reserved_ones_are_told_apart(shared):
    assert [cell.state for cell in cells(_Known(), "v1")] == ["shared", "free"]
    assert [(part.size, part.holder.job, part.instance) for part in cells(_Known(), "v1")[0].parts] == [
        (250, "default/mine", ""),
        (500, "default/secret", "g1-0"),
    ]
    assert [cell.state for cell in cells(_Known(), "w1")] == ["allocated", "allocated", "reserved", "free"]


def test_the_counts_are_one_querys_wherever_they_are_shown(shared, member):
    page = member.get("/gpus/")
    api = member.get("/api/v1/gpus/counts").json()
    listed = member.get("/api/v1/gpus").json()["results"]
    told = Counter(gpu["state"] for node in listed for gpu in node["gpus"])
    assert api["states"] == {state: told[state] for state in STATES} | {"shared": 1, "free": 2, "allocated": 2, "reserved": 1}
    assert (api["total"], api["in_use"], api["nodes"], api["whole_nodes_free"]) == (6, 3, 2, 0)
    assert {key: count for key, _word, _meaning, count in page.context["states"]} == api["states"]
    assert page.context["fleet"].used == member.get("/").context["figures"].gpus_used == 3
    assert member.get("/").context["figures"].gpus_free == api["states"]["free"]


class OwnJobs(StaffPolicy):
    """Jobs are their owner's alone."""

    def visible(self, user, queryset):
        found = super().visible(user, queryset)
        return found.filter(owner=user.get_username()) if queryset.model is Job else found

    def rights(self, user):
        return f"own:{user.get_username()}"


@pytest.fixture
def own_jobs(settings):
    settings.BASALT_POLICY = "tests.portal.test_gpus.OwnJobs"
    yield
    policy.cache_clear()


@pytest.mark.parametrize(
    "path",
    ["/gpus/", "/gpus/?view=table", "/gpus/?q=veile&view=table", "/gpus/export.csv", "/gpus/export.json", "/api/v1/gpus"],
)
def test_a_job_that_one_may_not_see_is_in_use_without_a_name(own_jobs, shared, member, path):
    answer = member.get(path)
    text = whole(answer)
    for word in ("secret", "veiled", "qiu", "boss", shared[1].uid):
        assert word not in text
    assert [cell.state for cell in cells(answer.wsgi_request.user, "w1")] == ["allocated", "allocated", "reserved", "free"]
    holder = cells(answer.wsgi_request.user, "w1")[0].holder
    assert holder == Holder("w1", (0, 1), "", "", "", "", releasing=False)


def whole(answer):
    """An answer's text, also of one that is streamed."""
    if not answer.streaming:
        return answer.content.decode()

    async def read():
        return b"".join([part async for part in answer.streaming_content]).decode()

    return async_to_sync(read)()


def rows_of(client, query=""):
    return list(csv.DictReader(io.StringIO(whole(client.get("/gpus/export.csv" + query)).removeprefix("\ufeff"))))


def test_the_file_has_a_row_for_each_part_and_for_each_gpu_that_nobody_holds(shared, member):
    rows = rows_of(member)
    assert [(row["node"], row["gpu"], row["state"], row["share_percent"], row["job"]) for row in rows] == [
        ("v1", "0", "shared", "25.0", "default/mine"),
        ("v1", "0", "shared", "50.0", "default/secret"),
        ("v1", "1", "free", "0", ""),
        ("w1", "0", "allocated", "100.0", "default/secret"),
        ("w1", "1", "allocated", "100.0", "default/secret"),
        ("w1", "2", "reserved", "0.0", "default/mine"),
        ("w1", "3", "free", "0", ""),
    ]
    assert rows[1]["mig_instance"] == "g1-0"
    assert rows[0]["load_percent"] == ""
    told = json.loads(whole(member.get("/gpus/export.json")))
    assert [row["job"] for row in told] == [row["job"] for row in rows]
    assert told[0]["load_percent"] is None


def test_a_file_of_many_nodes_is_read_in_chunks_and_whole(cluster, member, monkeypatch):
    monkeypatch.setattr("cluster.gpu_table.CHUNK", 7)
    fleet_rows.large_fleet(40)
    fleet_rows.occupy()
    assert len({(row["node"], row["gpu"]) for row in rows_of(member)}) == 320


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("state=reserved", [("w1", [2])]),
        ("q=MINE", [("v1", [0]), ("w1", [2])]),
        ("q=w1", [("w1", [0, 1, 2, 3])]),
        ("rack=r1", [("v1", [0, 1])]),
        ("spine=s2", []),
        ("q=prod&state=shared", [("v1", [0])]),
        ("state=free", [("v1", [1]), ("w1", [3])]),
        ("q=nobody", []),
    ],
)
def test_table_file_and_api_find_the_same(shared, member, query, found):
    page = member.get(f"/gpus/?view=table&{query}")
    assert [(strip.node.name, [cell.index for cell in strip.cells]) for strip in page.context["page"]] == found
    listed = member.get(f"/api/v1/gpus?{query}").json()["results"]
    assert [(row["node"], [gpu["index"] for gpu in row["gpus"]]) for row in listed] == found
    rows = rows_of(member, f"?{query}")
    assert sorted({(row["node"], int(row["gpu"])) for row in rows}) == [(name, gpu) for name, gpus in found for gpu in gpus]


def test_a_jobs_gpus_are_found_by_its_uid(shared, member):
    listed = member.get(f"/api/v1/gpus?job={shared[1].uid}").json()["results"]
    assert [(row["node"], [gpu["index"] for gpu in row["gpus"]]) for row in listed] == [("v1", [0]), ("w1", [0, 1])]


def test_the_api_refuses_what_is_no_filter_and_no_state(shared, member):
    assert member.get("/api/v1/gpus?colour=red").status_code == 400
    assert member.get("/api/v1/gpus?state=purple").status_code == 400


@pytest.mark.parametrize(
    "query", ["state=purple", "page=-3", "q=%00", "by=nonsense", "model=none", "node=none", "only=x", "job=../.."]
)
def test_a_nonsense_address_is_still_a_page(shared, member, query):
    for view in ("", "&view=table"):
        assert member.get(f"/gpus/?{query}{view}").status_code == 200


def test_what_a_pod_was_given_is_read_off_its_annotations(cluster):
    node = {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": "n", "uid": "n", "resourceVersion": "1",
            "annotations": {
                devices.REGISTER: "GPU-a,10,24000,NVIDIA-L4,true,hami-core:",
                "basalt.dev/gpu-usage": json.dumps({"time": runtime.now().isoformat(), "load": [40]}),
            },
        },
        "status": {"allocatable": {"volcano.sh/vgpu-number": "10"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip
    pod = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "p", "uid": "p", "resourceVersion": "2",
            "annotations": {devices.VGPU_IDS: "GPU-a,NVIDIA,6000,25:"},
        },
        "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"limits": {devices.VGPU_NUMBER: "1"}}}]},
        "status": {"phase": "Running"},
    }  # fmt: skip
    project_nodes(Batch([node]))
    project_pods(Batch([pod]))
    (cell,) = cells(_Known(), "n")
    assert (cell.state, cell.size, cell.load, cell.memory) == ("shared", 250, 40, 24_000)
    broken = {**pod, "metadata": {**pod["metadata"], "uid": "q", "annotations": {devices.GPU_INDEX: "0"}}}
    broken["spec"] = {"nodeName": "n", "containers": [{"name": "c", "resources": {"limits": {devices.GPU_MEMORY: "3000000000"}}}]}
    project_pods(Batch([broken]))
    assert Pod.objects.get(pk="q").cards == []


def test_a_silent_node_and_one_that_is_not_ready_are_told_apart(cluster):
    for name, status in (("away", "Unknown"), ("ill", "False")):
        meta = {"name": name, "uid": name, "resourceVersion": "1"}
        told = {"allocatable": {"nvidia.com/gpu": "1"}, "conditions": [{"type": "Ready", "status": status}]}
        project_nodes(Batch([{"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": told}]))
    assert (cells(_Known(), "away")[0].state, cells(_Known(), "ill")[0].state) == ("unknown", "not_ready")


ASKS = st.lists(
    st.builds(devices.Ask, st.integers(1, 2), st.integers(1, 30_000), st.none() | st.integers(1, 100), st.integers(0, 100)),
    max_size=2,
)


@given(st.lists(ASKS, max_size=12), st.sampled_from(["", "binpack", "spread"]))
def test_what_the_scheduler_gives_of_a_card_is_drawn_as_it_is_and_never_more_than_the_card(asked, order):
    cards = [devices.Card(f"GPU-{n}", 10, 24_000, "NVIDIA-L4", healthy=True) for n in range(3)]
    given_, held = [], {card.uuid: [] for card in cards}
    for asks in asked:
        choice = share_cards(states(cards, given_), devices.Share(tuple(asks)), order)
        if choice is None:
            continue
        given_ += choice.uses()
        pod = {"metadata": {"annotations": {devices.VGPU_IDS: devices.vgpu_text(choice.containers)}}, "spec": {}}
        for use in devices.uses_of(pod):
            held[use.card].append((Holder("n", (), "", "", "", "", releasing=False), Share(use.card, use.memory, use.cores)))
    for shares in held.values():
        parts, over = parts_of(shares, 24_000)
        assert not over
        assert sum(part.memory for part in parts) <= 24_000
        assert sum(part.size for part in parts) <= WHOLE


def test_the_compact_fleet_says_names_once_and_repeats_nothing(cluster):
    fleet_rows.large_fleet(1000)
    fleet_rows.occupy()
    text, digest = compact.encoded(queries.fleet(_Known()))
    assert len(text) < 8_000 * 12
    assert compact.encoded(queries.fleet(_Known())) == (text, digest)
    Node.objects.filter(name="n00003").update(cordoned=True)
    assert compact.encoded(queries.fleet(_Known()))[1] != digest


@given(st.lists(st.integers(-1, 3)))
def test_runs_say_what_they_were_made_of(values):
    found = compact.runs(values)
    assert [value for value, times in zip(found[::2], found[1::2], strict=True) for _ in range(times)] == values


def test_the_page_without_script_has_the_table_with_filters_and_files(shared, member):
    page = member.get("/gpus/").content.decode()
    noscript = page.partition("<noscript>\n")[2] or page[page.rindex("<noscript>") :]
    for part in (
        'name="q"',
        'name="state"',
        "/gpus/export.csv",
        "/gpus/export.json",
        reverse("jobs:detail", args=[shared[0].uid]),
    ):
        assert part in noscript


def test_the_table_says_alike_gpus_once_with_what_is_measured_of_them(cluster):
    job = factories.job("train")
    usage = {"at": runtime.now().timestamp(), "load": [35, 89, 60, 7], "memory": []}
    node = factories.node("n", 5, gpu_usage=usage)
    long_ago = factories.now() - timedelta(hours=1)
    factories.save([node], [job], factories.pods(job, 1, node="n", gpus=[0, 1, 2, 4], started_at=long_ago))
    strip = next(strip for strip in queries.fleet(_Known()).strips)
    assert [(run.first, run.last, run.state, run.load) for run in strip.runs] == [
        (0, 2, "allocated", "35–89"),
        (3, 3, "free", ""),
        (4, 4, "allocated", ""),
    ]
