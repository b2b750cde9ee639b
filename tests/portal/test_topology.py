"""The network, nodes and placements as pages, files and REST: right numbers, and nothing of jobs that the reader may not see."""

from __future__ import annotations

import csv
import io
import json

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse

from cluster import machines, runtime
from cluster.kinds import NODE
from cluster.models import HyperNode, Node
from jobs.choices import GroupPhase, JobPhase, PodPhase
from jobs.models import Job, Pod, Task
from jobs.topology import foretold
from portal.policy import StaffPolicy
from tests import factories, fleet_rows
from tests.factories import GPU
from tests.scheduler.topology.world import domain

pytestmark = pytest.mark.django_db(databases="__all__")

H100 = factories.MODELS[0]
PAIRS = [
    ["X", "PHB", "NV4", "NODE"],
    ["PHB", "X", "NODE", "NV4"],
    ["NV4", "NODE", "X", "PHB"],
    ["NODE", "NV4", "PHB", "X"],
]


@pytest.fixture
def member(client, make_user):
    client.force_login(make_user("ivo"), "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def fleet(db):
    """Two racks of two nodes with four GPUs each, as HyperNodes of one spine."""
    rows = [factories.node(f"n{i}", 4, rack=f"r{i // 2}", spine="s0", gpu_links=PAIRS) for i in range(4)]
    nets = [domain("r0", 1, ["n0", "n1"], name_of_tier="rack"), domain("r1", 1, ["n2", "n3"], name_of_tier="rack"),
            domain("s0", 2, domains=["r0", "r1"], name_of_tier="spine")]  # fmt: skip
    domains = [
        HyperNode(uid=net["metadata"]["name"], name=net["metadata"]["name"], resource_version=1, created_at=factories.now(),
                  tier=net["spec"]["tier"], tier_name=net["spec"]["tierName"], members=net["spec"]["members"])
        for net in nets
    ]  # fmt: skip
    factories.save(rows, domains)
    runtime.use(None)


def gang(name="train", places=(), phase=JobPhase.RUNNING, gpus=2, replicas=4, task="worker", **values):
    """A job of one task, with pods at (node, GPUs)."""
    made = factories.job(name, phase=phase, replicas=replicas, gpus=gpus * replicas, gpu_model=H100, **values)
    made.group_phase = GroupPhase.RUNNING if phase == JobPhase.RUNNING else GroupPhase.PENDING
    factories.save([made])
    requests = {GPU: gpus * 1000, "cpu": 1000}
    Task.objects.create(job=made, name=task, position=0, replicas=replicas, min_available=replicas, requests=requests)
    pods = []
    for index, (node, held) in enumerate(places):
        (pod,) = factories.pods(made, 1, task, node=node, gpus=list(held), requests=requests)
        pod.index, pod.name = index, f"{name}-{task}-{index}"
        pods.append(pod)
    factories.save(pods)
    return made


HIDDEN = "secret-train"


class NoSecrets(StaffPolicy):
    """Everybody sees all but one job."""

    def visible(self, user, queryset):
        found = super().visible(user, queryset)
        return found.exclude(name=HIDDEN) if queryset.model is Job else found

    def rights(self, user):
        return "most"


@pytest.fixture
def secret(settings, fleet):
    settings.BASALT_POLICY = f"{__name__}.NoSecrets"
    return gang(HIDDEN, [("n0", (0, 1))])


# -- the network -------------------------------------------------------------------------------------------------------


def test_the_network_shows_each_domain_and_the_largest_gang_of_each_tier(member, fleet):
    gang(places=[("n0", (0, 2)), ("n1", (0, 1))])
    page = member.get(reverse("topology:domains"))
    root = page.context["root"]
    assert [(row.name, row.room.free, row.room.gpus) for row in page.context["rows"]] == [
        ("s0", 12, 16),
        ("r0", 4, 8),
        ("r1", 8, 8),
    ]
    assert (root.room.free, root.room.whole) == (12, 2)
    tiers = [(fits.label, fits.gpus, fits.domain, fits.nodes) for fits, _models in page.context["tiers"]]
    assert tiers == [("node", 4, "n2", 1), ("rack", 8, "r1", 2), ("spine", 12, "s0", 2), ("fleet", 12, "", 2)]
    assert reverse("topology:domain", args=["r1"]) in page.content.decode()


def test_the_table_says_what_the_picture_does(member, fleet):
    page = member.get(reverse("topology:domains") + "?view=table").content.decode()
    assert '<svg class="tp-cells"' not in page
    for name in ("s0", "r0", "r1"):
        assert reverse("topology:domain", args=[name]) in page


def test_a_domain_shows_its_nodes_down_to_their_islands(member, fleet):
    gang(places=[("n0", (0, 1))])
    page = member.get(reverse("topology:domain", args=["r0"]))
    first = page.context["nodes"][0]
    assert [[cell.index for cell in island] for island in first["islands"]] == [[0, 2], [1, 3]]
    assert (first["best"].gpus, first["best"].slowest) == ((2, 3), "PHB")
    assert member.get(reverse("topology:domain", args=["nowhere"])).status_code == 404


def test_a_domain_of_a_label_may_have_a_stroke_in_its_name(member, db):
    factories.save([factories.node(f"n{i}", rack="r", spine=f"s{i}") for i in range(2)])
    assert member.get(reverse("topology:domain", args=["s0/r"])).status_code == 200
    assert member.get("/api/v1/topology/domains/s0/r").json()["node_names"] == ["n0"]


def test_free_gpus_of_no_use_are_listed_with_their_cause(member, fleet):
    Node.objects.filter(name="n3").update(cordoned=True)
    gang(places=[("n0", (0, 1)), ("n1", (3,))])
    gang("waits", phase=JobPhase.PENDING)
    page = member.get(reverse("topology:fragments"))
    assert [(part.node, part.gpus, part.cause) for part in page.context["page"]] == [("n3", 4, "cordoned"), ("n1", 1, "leftover")]
    only = member.get(reverse("topology:fragments") + "?cause=leftover")
    assert [part.node for part in only.context["page"]] == ["n1"]
    answer = member.get("/api/v1/topology/fragments").json()
    assert (answer["free"], answer["unusable"], answer["causes"]) == (13, 5, {"cordoned": 4, "leftover": 1})
    assert (answer["judged_by"], answer["nodes"][1]) == (
        "waiting", {"node": "n1", "gpu_model": H100, "free": 3, "unusable": 1, "cause": "leftover"},
    )  # fmt: skip


def test_rest_has_the_domains_of_the_page(member, fleet):
    answer = member.get("/api/v1/topology").json()
    assert [(row["name"], row["parent"], row["largest_gang"]["gpus"]) for row in answer["domains"]] == [
        ("", "", 16), ("s0", "", 16), ("r0", "s0", 8), ("r1", "s0", 8),
    ]  # fmt: skip
    assert (answer["source"], [tier["name"] for tier in answer["tiers"]]) == ("hypernodes", ["node", "rack", "spine", "fleet"])
    assert answer["tiers"][1]["models"][H100]["gpus"] == 8


@pytest.mark.parametrize("path", ["/topology/", "/topology/?view=table", "/topology/fragments/", "/nodes/", "/api/v1/topology"])
def test_more_nodes_domains_and_pods_take_no_more_queries(member, fleet, path, django_assert_max_num_queries):
    gang(places=[("n0", (0,))])
    member.get(path)
    with django_assert_max_num_queries(24) as few:
        member.get(path)
    fleet_rows.large_fleet(260)
    fleet_rows.occupy()
    with django_assert_max_num_queries(len(few)):
        assert member.get(path).status_code == 200


def test_an_empty_cluster_has_pages_too(member, db):
    for path in ("/topology/", "/topology/fragments/", "/nodes/", "/nodes/?unusable=1"):
        assert member.get(path).status_code == 200
    assert member.get("/api/v1/topology").json()["domains"][0]["gpus"] == 0


# -- a node ------------------------------------------------------------------------------------------------------------


def test_a_node_shows_free_sets_held_sets_and_the_best_they_could_have_had(member, fleet):
    job = gang(places=[("n0", (0, 1))], gpus=2)
    page = member.get(reverse("cluster:node", args=["n0"]))
    offers = {offer.size: offer.given for offer in page.context["offers"]}
    assert (offers[2].gpus, offers[2].slowest, offers[4]) == ((2, 3), "PHB", None)
    (holding,) = page.context["holdings"]
    assert (holding.holder.job_uid, holding.held.had.gpus, holding.held.best.gpus) == (job.uid, (0, 1), (0, 2))
    assert not holding.held.is_best
    answer = member.get("/api/v1/nodes/n0/sets").json()
    assert answer["islands"] == [[0, 2], [1, 3]]
    assert answer["free_sets"][1]["set"]["gpus"] == [2, 3]
    assert answer["held_sets"][0]["best"] == {
        "gpus": [0, 2],
        "slowest_link": "NV4",
        "bandwidth_gbs": 100,
        "score": answer["held_sets"][0]["best"]["score"],
    }


def test_a_node_without_a_topology_table_says_that_links_are_not_known(member, db):
    factories.save([factories.node("bare", 4)])
    page = member.get(reverse("cluster:node", args=["bare"])).content.decode()
    assert "not known" in page
    answer = member.get("/api/v1/nodes/bare/sets").json()
    assert (answer["known"], answer["free_sets"][1]["set"]["score"]) == (False, None)


def test_whoever_may_not_see_a_job_does_not_learn_its_name_from_sets_files_or_rest(member, secret):
    places = [
        reverse("cluster:node", args=["n0"]), reverse("cluster:node_panel", args=["n0"]), "/api/v1/nodes/n0/sets", "/nodes/",
        "/topology/", reverse("topology:domain", args=["r0"]), "/topology/fragments/", "/api/v1/topology",
        "/api/v1/topology/fragments",
    ]  # fmt: skip
    for place in places:
        text = member.get(place).content.decode()
        assert HIDDEN not in text, place
        assert secret.uid not in text, place
    assert member.get("/api/v1/nodes/n0/sets").json()["held_sets"][0]["set"]["gpus"] == [0, 1]
    assert member.get(f"/api/v1/jobs/{secret.uid}/placement").status_code == 404
    assert member.get(reverse("jobs:detail", args=[secret.uid]) + "?tab=placement").status_code == 404


def test_what_was_done_to_a_node_is_remembered_with_who_did_it(client, make_user, db):
    cluster = fleet_rows.demo_cluster()
    runtime.use(cluster)
    client.force_login(make_user("root-admin", staff=True), "django.contrib.auth.backends.ModelBackend")
    client.post(reverse("cluster:node_action", args=["h100-01", "cordon"]))
    machines.act("h100-01", "uncordon", "lena")
    page = client.get(reverse("cluster:node", args=["h100-01"]))
    assert sorted(words for _event, words in page.context["done"]) == ["Cordoned by root-admin", "Uncordoned by lena"]
    assert page.context["node"].conditions[0]["type"] == "Ready"
    assert not (cluster.get(NODE, "h100-01")["spec"].get("unschedulable"))
    runtime.use(None)


def whole(answer):
    """A file that is streamed, as text."""

    async def read():
        return b"".join([part.encode() if isinstance(part, str) else part async for part in answer.streaming_content]).decode(
            "utf-8-sig"
        )

    return async_to_sync(read)()


def test_the_list_of_nodes_is_narrowed_sorted_and_kept_as_a_file(member, fleet):
    Node.objects.filter(name="n3").update(cordoned=True)
    gang(places=[("n0", (0,))])
    page = member.get("/nodes/?sort=-unusable")
    assert [node.name for node, _use, _parts in page.context["rows"]] == ["n3", "n0", "n1", "n2"]
    state = next(panel for panel in page.context["panels"] if panel.name == "state")
    assert [(choice.value, choice.count) for choice in state.choices] == [("ready", 3), ("cordoned", 1)]
    useless = member.get("/nodes/?unusable=1").context
    assert [node.name for node, _use, _parts in useless["rows"]] == ["n0", "n3"]
    assert [(choice.value, choice.count) for choice in useless["panels"][0].choices] == [("ready", 1), ("cordoned", 1)]
    text = whole(member.get("/nodes/export.csv?sort=-unusable&state=ready"))
    table = list(csv.DictReader(io.StringIO(text)))
    assert [(row["name"], row["gpus_used"], row["gpus_unusable"], row["causes"]) for row in table][:1] == [
        ("n0", "1", "1", "leftover:1")
    ]
    assert len(json.loads(whole(member.get("/nodes/export.json?rack=r1")))) == 2


# -- placements --------------------------------------------------------------------------------------------------------


def placement(member, job):
    return member.get(reverse("jobs:detail", args=[job.uid]) + "?tab=placement")


def test_a_running_gang_is_drawn_with_its_spread(member, fleet):
    job = gang(places=[("n0", (0, 2)), ("n0", (1, 3)), ("n2", (0, 2))], replicas=3)
    page = placement(member, job)
    drawn = page.context["drawn"]
    assert (drawn.detail, drawn.domain, drawn.tier, drawn.spread.nodes) == ("named", "s0", "spine", 2)
    assert drawn.spread.score == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert [(rack.name, rack.pods, rack.gpus, rack.nodes, rack.all_nodes) for rack in drawn.sections[0].racks] == [
        ("r0", 2, 4, 1, 2), ("r1", 1, 2, 1, 2),
    ]  # fmt: skip
    r0 = drawn.sections[0].racks[0]
    assert [number for _x, _y, number in sorted(r0.labels)] == [0, 1]
    assert dict(r0.paths)["t1"].count("M") == 4
    assert "0.67" in page.content.decode()
    answer = member.get(f"/api/v1/jobs/{job.uid}/placement").json()["placement"]
    assert (answer["kind"], answer["spread_score"], answer["crossed"]) == ("now", 0.6667, {"rack": 2, "spine": 1})
    assert answer["places"][0] == {"task": "worker", "node": "n0", "pods": 2, "gpus": [0, 1, 2, 3]}
    assert member.get("/api/v1/jobs/default/train/placement").json()["uid"] == job.uid


def test_an_ended_gang_shows_where_it_was(member, fleet):
    job = gang(places=[("n1", (0,))], phase=JobPhase.COMPLETED, finished_at=factories.now())
    Pod.objects.update(phase=PodPhase.SUCCEEDED, deleted_at=factories.now())
    assert placement(member, job).context["places_kind"] == "was"


def test_a_waiting_gang_shows_where_it_would_go(member, fleet):
    job = gang(phase=JobPhase.PENDING, replicas=2)
    foretold.use(lambda user, asked: [("train-worker-0", "n3", (0, 2)), ("train-worker-1", "n3", (1, 3))])
    try:
        page = placement(member, job)
        assert (page.context["places_kind"], page.context["drawn"].domain, page.context["drawn"].spread.score) == (
            "would",
            "r1",
            1.0,
        )
        assert page.context["place_rows"][0].gpus == (0, 1, 2, 3)
    finally:
        foretold.use(None)


def test_a_gang_that_fits_nowhere_shows_which_domain_comes_nearest(member, fleet):
    gang("other", places=[("n0", (0, 1)), ("n1", (0,))])
    job = gang(phase=JobPhase.PENDING, replicas=4, gpus=4)
    job.manifest["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    job.save()
    foretold.use(lambda user, asked: [])
    try:
        page = placement(member, job)
        near = [(each.label, each.name, each.gpus, each.asked_gpus, each.short) for each in page.context["nearest"]]
        assert near == [("rack", "r1", 8, 16, 8), ("spine", "s0", 8, 16, 8), ("fleet", "", 8, 16, 8)]
        assert page.context["limit"].tier == "1"
        answer = member.get(f"/api/v1/jobs/{job.uid}/placement").json()
        assert (answer["placement"], answer["nearest"][0]["domain"], answer["topology"]) == (
            None, "r1", {"mode": "hard", "highest_tier": "1"},
        )  # fmt: skip
    finally:
        foretold.use(None)


def test_a_very_large_gang_is_drawn_small_then_told_by_rack(member, db, django_assert_max_num_queries):
    fleet_rows.large_fleet(250)
    many = gang(places=[(f"n{i:05}", tuple(range(8))) for i in range(250)], replicas=250, gpus=8)
    with django_assert_max_num_queries(30):
        drawn = placement(member, many).context["drawn"]
    assert (drawn.detail, drawn.places.pods, drawn.spread.nodes) == ("small", 250, 250)
    assert not any(rack.labels for section in drawn.sections for rack in section.racks)


def test_names_from_outside_are_escaped(member, db):
    evil = '<img src=x onerror="alert(1)">'
    factories.save(
        [
            factories.node(
                "evil",
                rack=evil,
                spine=evil + "2",
                gpu_model=evil,
                conditions=[dict.fromkeys(("type", "status", "reason", "message", "since"), evil)],
            )
        ]
    )
    job = gang(evil, [("evil", (0,))], task=evil)
    paths = ("/topology/", "/topology/?view=table", "/topology/fragments/", "/nodes/", "/nodes/evil/",
             reverse("topology:domain", args=[evil]), reverse("jobs:detail", args=[job.uid]) + "?tab=placement")  # fmt: skip
    for path in paths:
        assert "<img src=x" not in member.get(path).content.decode(), path


@pytest.mark.parametrize(
    "path",
    [
        "/topology/?view=%00", "/topology/domains/%00/", "/topology/domains/" + "x" * 2000 + "/",
        "/topology/fragments/?cause=%00&page=zz", "/topology/fragments/?page=-1", "/nodes/?sort=-%00&unusable=zz&spine=%27",
        "/nodes/?q=%00&model=-&state=lost&rack=x", "/nodes/?sort=--used", "/api/v1/topology/domains/%00",
        "/api/v1/topology/fragments?x=1", "/api/v1/nodes/%00/sets", "/api/v1/jobs/%00/placement",
    ],
)  # fmt: skip
def test_nonsense_in_an_address_is_no_fault_of_the_server(member, fleet, path):
    assert member.get(path).status_code in (200, 301, 400, 404)


def test_annotations_that_make_no_sense_break_no_page(member, fleet):
    job = gang(places=[("n0", (-1, 3, 10**15)), ("n1", (0,))])
    Node.objects.filter(name="n0").update(gpu_unhealthy=[99], allocatable={})
    for path in (
        "/topology/",
        "/nodes/",
        "/nodes/n0/",
        "/topology/domains/r0/",
        reverse("jobs:detail", args=[job.uid]) + "?tab=placement",
    ):
        assert member.get(path).status_code == 200, path
    assert member.get(f"/api/v1/jobs/{job.uid}/placement").json()["placement"]["gpus"] == 3


def test_a_node_that_two_domains_claim_breaks_no_page(member, fleet):
    net = domain("r9", 1, ["n0", "n3"], name_of_tier="rack")
    factories.save([HyperNode(uid="r9", name="r9", resource_version=1, created_at=factories.now(), tier=1, tier_name="rack",
                              members=net["spec"]["members"])])  # fmt: skip
    job = gang(places=[("n0", (0, 1)), ("n3", (0, 1))], replicas=2)
    assert member.get("/topology/").status_code == 200
    assert 0.0 <= placement(member, job).context["drawn"].spread.score <= 1.0
