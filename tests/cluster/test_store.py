"""What the embedded store does beyond the port's shared suite."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.admission import Admission, Request
from cluster.clock import ManualClock
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import ApiError, BadRequest, Expired, FieldError, Forbidden, Invalid, TooManyRequests
from cluster.kinds import CONFIG_MAP, DISRUPTION_BUDGET, NAMESPACE, POD, SECRET
from cluster.port import Binding, Obj


def config(name: str, namespace: str = "ns", **metadata: Any) -> Obj:
    return {"metadata": {"name": name, "namespace": namespace, **metadata}}


def test_a_namespace_is_made_on_first_use(cluster: EmbeddedCluster) -> None:
    cluster.create(CONFIG_MAP, config("a", "team"))
    assert cluster.get(NAMESPACE, "team")["status"] == {"phase": "Active"}


def test_a_refused_object_makes_no_namespace(cluster: EmbeddedCluster) -> None:
    with pytest.raises(Invalid):
        cluster.create(CONFIG_MAP, config("BAD", "team"))
    cluster.create(CONFIG_MAP, config("a", "other"), dry_run=True)
    assert cluster.list(NAMESPACE).items == []


def test_a_namespace_takes_what_is_in_it_along_and_waits_for_its_pods(cluster: EmbeddedCluster) -> None:
    cluster.create(CONFIG_MAP, config("a", "team"))
    pod = cluster.create(POD, {**config("p", "team"), "spec": {"containers": [{"name": "c", "image": "i"}]}})
    cluster.bind(Binding("team", "p", pod["metadata"]["uid"], "n"))
    cluster.delete(NAMESPACE, "team")
    assert cluster.list(CONFIG_MAP).items == []
    assert cluster.get(NAMESPACE, "team")["status"]["phase"] == "Terminating"
    with pytest.raises(Forbidden, match="is being deleted"):
        cluster.create(CONFIG_MAP, config("b", "team"))
    cluster.remove_stopped([("team", "p", pod["metadata"]["uid"])])
    assert cluster.list(NAMESPACE).items == []
    cluster.create(CONFIG_MAP, config("b", "team"))


def test_the_default_namespace_stays(cluster: EmbeddedCluster) -> None:
    cluster.create(CONFIG_MAP, config("a", "default"))
    with pytest.raises(Forbidden, match="always stays"):
        cluster.delete(NAMESPACE, "default")


def test_the_same_seed_gives_the_same_uids_and_names(clock: ManualClock) -> None:
    def run() -> list[Obj]:
        cluster = EmbeddedCluster(clock=clock, random=random.Random(7), admission=Admission())
        return [cluster.create(CONFIG_MAP, {"metadata": {"generateName": "g-"}}) for _ in range(5)]

    assert run() == run()


@pytest.mark.parametrize(
    "obj",
    [
        None, [], "x", {"metadata": []}, {"metadata": {"name": 1}}, {"metadata": {"name": "a"}, "x": {1: 2}},
        {"metadata": {"name": "a"}, "x": object()}, {"metadata": {"name": "a"}, "x": 2**70},
        {"metadata": {"name": "a", "labels": ["x"]}}, {"metadata": {"name": "a", "ownerReferences": 3}},
    ],
)  # fmt: skip
def test_what_is_no_object_is_refused(cluster: EmbeddedCluster, obj: Any) -> None:
    with pytest.raises((BadRequest, Invalid)):
        cluster.create(CONFIG_MAP, obj)
    assert cluster.list(CONFIG_MAP).items == []


def test_what_a_caller_does_to_its_object_later_does_not_reach_the_store(cluster: EmbeddedCluster) -> None:
    mine = {**config("a"), "data": {"k": "v"}}
    cluster.create(CONFIG_MAP, mine)
    mine["data"]["k"] = "changed"
    status = {"list": [1]}
    cluster.patch_status(CONFIG_MAP, "a", "ns", status)
    status["list"].append(2)
    stored = cluster.get(CONFIG_MAP, "a", "ns")
    assert (stored["data"], stored["status"]) == ({"k": "v"}, {"list": [1]})


class NoSecrets:
    """Rules that default a label and refuse what has none of it later."""

    def default(self, request: Request) -> None:
        request.obj["metadata"].setdefault("labels", {})["seen"] = request.operation.lower()

    def validate(self, request: Request) -> list[FieldError]:
        if request.operation == "DELETE":
            raise Forbidden("not this one")
        assert request.reader.list(CONFIG_MAP).items is not None
        return [] if "seen" in request.obj["metadata"].get("labels", {}) else [FieldError("/metadata/labels/seen", "is needed")]


def test_admission_defaults_on_create_and_validates_every_write(clock: ManualClock) -> None:
    rules = Admission()
    rules.register(SECRET, NoSecrets())
    cluster = EmbeddedCluster(clock=clock, admission=rules)
    made = cluster.create(SECRET, config("s"))
    assert made["metadata"]["labels"] == {"seen": "create"}
    with pytest.raises(Invalid) as caught:
        cluster.patch(SECRET, "s", "ns", {"metadata": {"labels": None, "annotations": {"k": 1}}})
    assert [fault.pointer for fault in caught.value.fields] == ["/metadata/annotations/k", "/metadata/labels/seen"]
    with pytest.raises(Forbidden, match="not this one"):
        cluster.delete(SECRET, "s", "ns")
    assert cluster.get(SECRET, "s", "ns") == made


def test_a_pod_held_by_gates_is_not_bound(cluster: EmbeddedCluster) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulingGates": [{"name": "example.com/wait"}]}
    cluster.create(POD, {**config("p"), "spec": spec})
    (outcome,) = cluster.bind_many([Binding("ns", "p", "", "n")])
    assert "scheduling gates: example.com/wait" in str(outcome.error)


@pytest.mark.parametrize(
    ("budget", "allowed"),
    [({"minAvailable": 2}, 1), ({"maxUnavailable": "50%"}, 2), ({"minAvailable": "100%"}, 0), ({}, 2)],
)
def test_a_disruption_budget_holds_evictions_back(cluster: EmbeddedCluster, budget: Obj, allowed: int) -> None:
    for number in range(3):
        spec = {"containers": [{"name": "c", "image": "i"}]}
        cluster.create(POD, {**config(f"p{number}", labels={"app": "web"}), "spec": spec})
        cluster.bind(Binding("ns", f"p{number}", "", "n"))
        cluster.patch_status(POD, f"p{number}", "ns", {"phase": "Running"})
    cluster.create(DISRUPTION_BUDGET, {**config("b"), "spec": {"selector": {"matchLabels": {"app": "web"}}, **budget}})
    evicted = 0
    for number in range(3):
        try:
            cluster.evict("ns", f"p{number}")
            evicted += 1
        except TooManyRequests:
            continue
    assert evicted == allowed


def test_a_continue_token_expires_with_the_history() -> None:
    cluster = EmbeddedCluster(admission=Admission(), history=10)
    for number in range(5):
        cluster.create(CONFIG_MAP, config(f"c{number}"))
    token = cluster.list(CONFIG_MAP, limit=2).continue_token
    for number in range(50):
        cluster.patch(CONFIG_MAP, "c0", "ns", {"data": {"n": str(number)}})
    with pytest.raises(Expired):
        cluster.list(CONFIG_MAP, limit=2, token=token)


def test_a_slow_watch_gets_the_difference_when_history_is_gone() -> None:
    cluster = EmbeddedCluster(admission=Admission(), history=10)
    for name in ("gone", "changed", "same", "again"):
        cluster.create(CONFIG_MAP, config(name))
    slow, fast = cluster.watch([CONFIG_MAP]), cluster.watch([CONFIG_MAP])
    assert len(slow.drain()) == 5
    seen = len(fast.drain())
    for number in range(100):
        cluster.patch(CONFIG_MAP, "changed", "ns", {"data": {"n": str(number)}})
        seen += len(fast.drain())
    cluster.delete(CONFIG_MAP, "gone", "ns")
    cluster.delete(CONFIG_MAP, "again", "ns")
    cluster.create(CONFIG_MAP, config("again"))
    cluster.create(CONFIG_MAP, config("new"))
    events = Counter((event.type, event.object["metadata"]["name"]) for event in slow.drain())
    assert events == Counter(
        [("DELETED", "gone"), ("DELETED", "again"), ("ADDED", "again"), ("ADDED", "new"), ("MODIFIED", "changed")]
    )
    assert seen + len(fast.drain()) == 5 + 100 + 4


NAMES = [f"o{number}" for number in range(5)]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "delete", "foreground", "orphan", "patch", "label", "finalize", "release"]),
        st.sampled_from(NAMES),
        st.lists(st.sampled_from(NAMES), max_size=2),
    ),
    max_size=40,
)


def do_step(cluster: EmbeddedCluster, step: tuple[str, str, list[str]]) -> None:
    verb, name, owners = step
    present = {obj["metadata"]["name"]: obj for obj in cluster.list(CONFIG_MAP).items}
    match verb:
        case "create":
            references = [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": o,
                    "uid": present[o]["metadata"]["uid"],
                    "blockOwnerDeletion": True,
                }
                for o in dict.fromkeys(owners)
                if o in present
            ]
            cluster.create(CONFIG_MAP, config(name, ownerReferences=references))
        case "delete":
            cluster.delete(CONFIG_MAP, name, "ns")
        case "foreground":
            cluster.delete(CONFIG_MAP, name, "ns", propagation="Foreground")
        case "orphan":
            cluster.delete(CONFIG_MAP, name, "ns", propagation="Orphan")
        case "patch":
            cluster.patch(CONFIG_MAP, name, "ns", {"data": {"n": str(len(owners))}})
        case "label":
            cluster.patch(CONFIG_MAP, name, "ns", {"metadata": {"labels": {"on": "yes" if owners else "no"}}})
        case "finalize":
            cluster.patch(CONFIG_MAP, name, "ns", {"metadata": {"finalizers": ["example.com/x"]}})
        case "release":
            cluster.patch(CONFIG_MAP, name, "ns", {"metadata": {"finalizers": None}})


@settings(max_examples=150, deadline=None)
@given(STEPS, st.integers(1, 30), st.integers(1, 7))
def test_whatever_happens_watches_agree_with_lists_and_nobody_is_left_behind(
    steps: list[tuple[str, str, list[str]]], history: int, stride: int
) -> None:
    cluster = EmbeddedCluster(admission=Admission(), history=history)
    plain, selecting = cluster.watch([CONFIG_MAP]), cluster.watch([CONFIG_MAP], labels="on=yes")
    mirrors: list[dict[str, Obj]] = [{}, {}]
    highest = 0

    def catch_up() -> None:
        for watch, mirror in zip((plain, selecting), mirrors):
            for event in watch.drain():
                name = event.object["metadata"]["name"] if event.object else ""
                if event.type == "DELETED":
                    assert mirror.pop(name)["metadata"]["uid"] == event.object["metadata"]["uid"]
                elif event.type != "SYNCED":
                    assert (event.type == "MODIFIED") == (name in mirror)
                    mirror[name] = event.object

    for number, step in enumerate(steps):
        try:
            do_step(cluster, step)
        except ApiError as error:
            assert error.status in (404, 409, 422)  # noqa: PT017 - a refusal is allowed, any other error is not
        version = int(cluster.list(CONFIG_MAP).resource_version)
        assert version >= highest
        highest = version
        if number % stride == 0:
            catch_up()
    catch_up()
    items = cluster.list(CONFIG_MAP).items
    assert [mirrors[0][name] for name in sorted(mirrors[0])] == items
    assert [mirrors[1][name] for name in sorted(mirrors[1])] == cluster.list(CONFIG_MAP, labels="on=yes").items
    uids = {obj["metadata"]["uid"] for obj in items}
    for obj in items:
        meta = obj["metadata"]
        assert "deletionTimestamp" not in meta or meta.get("finalizers"), "a marked object that nothing holds is gone"
        owners = [owner["uid"] for owner in meta.get("ownerReferences") or ()]
        assert set(owners) <= uids or "deletionTimestamp" in meta, "an owner is gone and its object stayed"
