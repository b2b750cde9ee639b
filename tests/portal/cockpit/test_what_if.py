"""The sandbox: what a draft says comes true, and asking writes nothing, neither to the cluster nor to a table."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.apps import apps
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster import runtime
from cluster.kinds import JOB, NODE, POD, POD_GROUP, QUEUE
from cluster.projection import Batch
from jobs.keys import group_name
from portal.cockpit import what_if
from portal.cockpit.draft import Draft, changes
from portal.mirror import PROJECTIONS
from portal.unblock import copy
from queues import operations
from scheduler import conf
from tests.portal.unblock.world import Stage, manifest

NODES = [{"name": f"n{index}", "cpu": 32, "memory": "128Gi", "gpu": 8} for index in range(2)]
KINDS = (NODE, QUEUE, JOB, POD_GROUP, POD)


def stage() -> Stage:
    """Queue a holds 8 of its 8 GPUs, one job of it waits for 4; 8 GPUs are free."""
    made = Stage(nodes=NODES, queues=[{"name": "a", "capability": {"gpu": 8}}, {"name": "b"}])
    made.submit(manifest("held", 2, cpu=1, gpu=4, queue="a"))
    made.rest()
    made.submit(manifest("waits", 1, cpu=1, gpu=4, queue="a"))
    made.rest()
    return made


def ask(made: Stage, text: str, configuration: Any = None) -> Any:
    draft = Draft.read(dict(pair.split("=", 1) for pair in text.split("&")) if text else {})
    found = made.view(lambda view: what_if.ask(view, draft, configuration))
    assert found is not None, draft.faults
    return found


def key(made: Stage, name: str) -> str:
    return f"default/{group_name(made.job(name))}"


def versions(made: Stage) -> Any:
    return {str(kind): [obj["metadata"]["resourceVersion"] for obj in made.cluster.list(kind).items] for kind in KINDS}


def test_a_higher_quota_lets_the_waiting_job_start_as_it_does_when_it_is_written():
    made = stage()
    found = ask(made, "capability.a=12")
    assert found.preview.starts == {key(made, "waits"): 1}
    (change,) = [each for each in found.preview.queues if each.name == "a"]
    assert [units["nvidia.com/gpu"] for units in change.allocated] == [8000, 12000]
    operations.update(made.cluster, "a", {"capability": {"nvidia.com/gpu": "12"}})
    made.rest()
    assert made.running("waits") == 1


def test_no_limit_is_written_as_a_dash():
    made = stage()
    assert ask(made, "capability.a=-").preview.starts == {key(made, "waits"): 1}


def test_jobs_of_a_drained_node_move_to_the_others():
    made = stage()
    node = next(pod["spec"]["nodeName"] for pod in made.world.running("held"))
    found = ask(made, f"drain={node}")
    (moved,) = found.moved.items()
    assert moved[0] == key(made, "held")
    assert moved[1][0] == moved[1][1] > 0


def test_jobs_of_a_removed_node_wait_where_there_is_no_room():
    made = stage()
    found = ask(made, "remove=n0,n1")
    assert found.moved == {key(made, "held"): (2, 0)}


def test_a_cordoned_node_keeps_its_pods_and_takes_no_others():
    made = stage()
    found = ask(made, "capability.a=12&cordon=n0,n1")
    assert (found.preview.starts, found.preview.evicted, found.moved) == ({}, [], {})


def test_nodes_like_another_make_room():
    made = stage()
    waits = {key(made, "waits"): 1}
    assert ask(made, "capability.a=12&cordon=n0,n1&add=1*n0").preview.starts == waits


def test_another_configuration_is_played_as_well():
    made = stage()
    nothing = conf.load('actions: "backfill"\ntiers: []\n')
    assert ask(made, "capability.a=12").preview.starts
    assert ask(made, "capability.a=12", nothing).preview.starts == {}


def test_the_copy_is_afterwards_as_it_was_and_the_cluster_too():
    made = stage()
    before, first = versions(made), ask(made, "capability.a=12").preview.starts
    for text in ("remove=n1,n0&add=3*n0", "drain=n0", "weight.a=7&cordon=n1", "capability.a=12&remove=n0"):
        ask(made, text)
    assert ask(made, "").is_nothing
    assert ask(made, "capability.a=12").preview.starts == first
    assert versions(made) == before


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("weight.a=0", "weight.a"), ("weight.a=1.5", "weight.a"), ("weight.a=x", "weight.a"), ("weight.a=9999999999", "weight.a"),
        ("deserved.a=-3", "deserved.a"), ("capability.a=1e9", "capability.a"), ("capability.a=\u0663", "capability.a"),
        ("add=n0", "add"), ("add=0*n0", "add"), ("add=1001*n0", "add"), ("add=1*gone", "add"), ("cordon=gone", "cordon"),
        ("drain=gone", "drain"), ("remove=gone", "remove"), ("weight.gone=2", "weight.gone"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_told_by_its_field(text, field):
    made = stage()
    draft = Draft.read(dict([text.split("=", 1)]))
    assert made.view(lambda view: what_if.ask(view, draft)) is None
    assert list(draft.faults) == [field]


@given(
    st.dictionaries(
        st.sampled_from(["a", "b/c", "d.e"]), st.fixed_dictionaries({}, optional={"weight": st.integers(1, 99).map(str)})
    ),
    st.lists(st.sampled_from(["n0", "n1"]), unique=True),
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from(["n0", "n1"])), unique_by=lambda each: each[1]),
)
def test_a_draft_comes_back_from_its_address(queues, nodes, add):
    draft = Draft({name: fields for name, fields in queues.items() if fields}, nodes, [], nodes[:1], add)
    assert Draft.read(dict(parse_qsl(draft.query()))) == draft


@settings(deadline=None, max_examples=8, suppress_health_check=list(HealthCheck))
@given(weights=st.tuples(st.integers(1, 9), st.integers(1, 9)), capability=st.integers(8, 16))
def test_what_is_foretold_of_queues_comes_true(weights, capability):
    made = stage()
    found = ask(made, f"weight.a={weights[0]}&weight.b={weights[1]}&capability.a={capability}")
    operations.update(made.cluster, "a", {"weight": weights[0], "capability": {"nvidia.com/gpu": str(capability)}})
    operations.update(made.cluster, "b", {"weight": weights[1]})
    made.rest()
    assert made.running("waits") == len(found.preview.starts)


# -- the page ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def shown(monkeypatch):
    made = stage()
    runtime.use(made.cluster)
    monkeypatch.setattr(copy, "_copies", {id(made.cluster): made.copy})
    for kind in KINDS:
        PROJECTIONS[kind].project(Batch(made.cluster.list(kind).items))
    yield made
    runtime.use(None)


def checksums() -> dict[str, str]:
    """Of every table but those of sessions and sign-ins."""
    found = {}
    for model in apps.get_models():
        if model._meta.managed and model._meta.app_label in ("jobs", "queues", "cluster", "portal"):
            rows = repr(list(model._default_manager.order_by("pk").values()))
            found[model._meta.label] = hashlib.sha256(rows.encode()).hexdigest()
    return found


@pytest.mark.django_db(databases="__all__")
def test_the_page_answers_and_writes_nothing(client, make_user, shown):
    client.force_login(make_user("boss", staff=True))
    url = reverse("cockpit:what_if")
    client.get(url)
    tables, objects = checksums(), versions(shown)
    sent = client.post(url, {"weight.a": "1", "capability.a": "12", "weight.b": "1", "cordon": "n0 n1", "add": "1*n0"})
    assert sent.status_code == 302
    assert "weight" not in sent["Location"]  # what stays as it is, is no part of the draft
    emptied = client.post(url, {"capability.a": "", "deserved.b": ""})
    assert emptied["Location"] == f"{url}?capability.a=-#result"
    html = client.get(sent["Location"].partition("#")[0]).content.decode()
    assert "Would start" in html
    assert reverse("queues:edit", args=["a"]) in html
    assert (checksums(), versions(shown)) == (tables, objects)


@pytest.mark.django_db
def test_the_page_tells_faults_and_keeps_what_was_written(client, make_user, shown):
    client.force_login(make_user("boss", staff=True))
    answer = client.post(reverse("cockpit:what_if"), {"weight.a": "none", "add": "many"})
    assert answer.status_code == 422
    html = answer.content.decode()
    assert "must be a whole number from 1 on, not none" in html
    assert 'value="none"' in html
    assert 'value="many"' in html
    assert client.get(reverse("cockpit:what_if") + "?remove=gone").status_code == 422


@pytest.mark.django_db
def test_rest_answers_the_same(client, make_user, shown):
    client.force_login(make_user("boss", staff=True))
    told = client.post(
        "/api/v1/scheduler/what-if", {"capability.a": 12, "drain": "n0 n1", "add": "3*n1"}, "application/json"
    ).json()
    wrong = client.post("/api/v1/scheduler/what-if", {"capability.a": "x"}, "application/json")
    assert [each["job"] for each in told["starts"]] == ["default/waits"]
    assert [(each["job"], each["pods"], each["placed_again"]) for each in told["moved"]] == [("default/held", 2, 2)]
    assert told["settled"] is True
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["pointer"] == "/capability.a"


@pytest.mark.parametrize("weight", ["0", "2147483648", "0000000000019", "1" * 5000, "²", "-1", "1.5"])
def test_a_weight_that_no_queue_can_have_is_told(weight):
    assert list(Draft.read({"weight.a": weight}).faults) == ["weight.a"]


def test_nodes_like_one_are_added_together():
    draft = Draft.read({"add": "2*n1,3*n2\n4*n1"})
    assert (draft.add, draft.faults) == ([(6, "n1"), (3, "n2")], {})
    assert draft.query() == "add=6%2An1%2C3%2An2"
    made = stage()
    events = made.view(lambda view: changes(view, Draft.read({"add": "2*n1,3*n1"}), "gpu")).events
    assert [event.object["metadata"]["name"] for event in events] == [f"n1-new-{number}" for number in range(1, 6)]
    assert "add" in Draft.read({"add": "600*n1,600*n1"}).faults


@pytest.mark.parametrize(
    ("door", "body", "pointer"),
    [
        ("what-if", {"cordn": "n1"}, "/cordn"),
        ("what-if", {"weight": 3}, "/weight"),
        ("what-if", {"size.a": 3}, "/size.a"),
        ("what-if", {"cordon": ["n1"]}, "/cordon"),
        ("configuration/check", {"text": "", "conf": ""}, "/conf"),
    ],
)
def test_rest_refuses_fields_that_are_mistyped(client, make_user, door, body, pointer):
    client.force_login(make_user("boss", staff=True))
    answer = client.post(f"/api/v1/scheduler/{door}", body, "application/json")
    assert (answer.status_code, [each["pointer"] for each in answer.json()["errors"]]) == (400, [pointer])
