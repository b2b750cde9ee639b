"""Drains as they are carried out: who goes and who stays, budgets, modes, deadlines, cancelling, crashes, two admins at once."""

from __future__ import annotations

import contextlib
from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.test import override_settings

from cluster import machines, objects, runtime
from cluster.errors import BadRequest, Conflict, Forbidden, NotFound, Unavailable
from cluster.kinds import DAEMON_SET, EVENT, NODE, REPLICA_SET
from cluster.leaving import DRAIN
from cluster.models import Event, Node
from portal.maintenance import rights
from portal.maintenance.models import Drain, DrainState, NodeState
from portal.maintenance.worker import LEASE, Worker
from tests.portal.maintenance.world import LOCAL, WHY, Site

pytestmark = pytest.mark.django_db(databases="__all__")


def test_the_pods_leave_the_node_and_start_again_elsewhere(site, boss):
    site.run("train", 2, gpu=4, cpu=1)
    node = site.world.running("train")[0]["spec"]["nodeName"]
    there = len(site.on(node))
    drain = site.until_done(site.drain(boss, node))
    assert drain.state == DrainState.DONE
    assert site.on(node) == set()
    assert site.is_cordoned(node)
    assert site.running("train") == 2
    row = site.row(drain, node)
    assert (row.state, row.pods, row.left, row.was_cordoned) == (NodeState.DRAINED, there, 0, False)
    assert DRAIN not in objects.annotations(site.node(node))
    assert not Node.objects.get(name=node).draining


def test_while_it_goes_on_the_node_says_so(site, boss):
    site.run("train", 1, gpu=1, node="n0")
    site.budget("all", 1, **{"volcano.sh/job-name": "train"})
    drain = site.drain(boss, "n0")
    site.look()
    assert objects.annotations(site.node("n0"))[DRAIN] == str(drain.pk)
    row = Node.objects.get(name="n0")
    assert (row.cordoned, row.draining) == (True, True)


def test_pods_of_daemon_sets_static_pods_and_those_that_have_ended_stay(site, boss):
    site.put("agent", "n0", by=DAEMON_SET)
    site.put("static", "n0", annotations={"kubernetes.io/config.mirror": "x"})
    site.put("old", "n0", by=REPLICA_SET, phase="Succeeded")
    site.put("web", "n0", by=REPLICA_SET)
    site.until_done(site.drain(boss, "n0"))
    assert site.on("n0") == {"agent", "static", "old"}


def test_bare_pods_and_local_data_are_asked_for(site, boss):
    site.put("bare", "n0")
    site.put("scratch", "n0", by=REPLICA_SET, spec=LOCAL)
    with pytest.raises(Conflict) as refused:
        site.drain(boss, "n0")
    assert [fault.pointer for fault in refused.value.fields] == ["/bare", "/local_data"]
    assert not Drain.objects.exists()
    with pytest.raises(Conflict) as refused:
        site.drain(boss, "n0", bare=True)
    assert [fault.pointer for fault in refused.value.fields] == ["/local_data"]
    site.until_done(site.drain(boss, "n0", bare=True, local_data=True))
    assert site.on("n0") == set()


def test_a_bare_pod_that_comes_meanwhile_is_held_and_not_evicted(site, boss):
    drain = site.drain(boss, "n0")
    site.put("late", "n0")
    site.look(3)
    assert site.on("n0") == {"late"}
    (held,) = site.row(drain, "n0").held
    assert (held["name"], held["code"]) == ("late", "bare")


def test_a_budget_keeps_a_pod_until_it_is_freed(site, boss):
    site.put("a", "n0", by=REPLICA_SET, labels={"app": "db"})
    budget = site.budget("db", 1, app="db")
    drain = site.drain(boss, "n0")
    site.look(3)
    row = site.row(drain, "n0")
    assert site.on("n0") == {"a"}
    assert (row.left, row.held_count, row.held[0]["code"]) == (1, 1, "budget")
    assert "needs 1 healthy pods and there are 1" in row.held[0]["why"]
    site.put("b", "n1", by=REPLICA_SET, labels={"app": "db"})
    site.look(3)
    drain.refresh_from_db()
    assert (drain.state, site.on("n0"), site.on("n1")) == (DrainState.DONE, set(), {"b"})
    assert objects.name(budget) == "db"


def test_a_gang_submitted_meanwhile_is_not_placed_there(site, boss):
    site.run("first", 1, gpu=8, node="n0")
    site.budget("all", 1, **{"volcano.sh/job-name": "first"})
    site.drain(boss, "n0")
    site.look()
    site.run("second", 2, gpu=4, cpu=1)
    assert {pod["spec"]["nodeName"] for pod in site.world.running("second")} == {"n1"}


def test_who_waits_evicts_nobody_and_is_done_when_the_last_has_ended(site, boss):
    site.run("train", 2, gpu=2, cpu=1, node="n0")
    drain = site.drain(boss, "n0", mode="wait")
    site.look(3)
    assert site.running("train") == 2
    assert site.row(drain, "n0").left == 2
    for pod in site.world.running("train"):
        site.world.kubelet.end(pod, 0)
    site.world.settle()
    site.look(2)
    drain.refresh_from_db()
    assert drain.state == DrainState.DONE
    assert Event.objects.filter(about_name="n0", reason=machines.DRAINED).count() == 1


def test_after_the_deadline_what_is_left_is_evicted_if_that_was_chosen(site, boss):
    site.run("train", 1, gpu=2, node="n0")
    until = runtime.now() + timedelta(hours=1)
    drain = site.drain(boss, "n0", mode="wait-then-evict", deadline=until)
    site.look(2)
    assert site.going("n0") == {"train-w-0"}
    site.world.clock.advance(3600)
    site.look(3)
    drain.refresh_from_db()
    assert (drain.state, site.going("n0")) == (DrainState.DONE, set())


@pytest.mark.parametrize("mode", ["wait", "evict"])
def test_else_it_gives_up_at_the_deadline_and_the_node_stays_cordoned(site, boss, mode):
    site.put("a", "n0", by=REPLICA_SET, labels={"app": "db"})
    site.budget("db", 1, app="db")
    drain = site.drain(boss, "n0", mode=mode, deadline=runtime.now() + timedelta(minutes=1))
    site.look()
    site.world.clock.advance(60)
    site.look()
    drain.refresh_from_db()
    assert (drain.state, site.on("n0"), site.is_cordoned("n0")) == (DrainState.OVERDUE, {"a"}, True)
    assert site.row(drain, "n0").state == NodeState.LEFT
    assert not Node.objects.get(name="n0").draining


@pytest.mark.parametrize("uncordon", [True, False])
def test_a_drain_is_cancelled(site, boss, uncordon):
    site.put("a", "n0", by=REPLICA_SET, labels={"app": "db"})
    site.budget("db", 1, app="db")
    drain = site.drain(boss, "n0")
    site.look()
    site.cancel(boss, drain, uncordon=uncordon)
    site.look(2)
    drain.refresh_from_db()
    assert (drain.state, drain.ended_by, site.on("n0")) == (DrainState.CANCELLED, "boss", {"a"})
    assert site.is_cordoned("n0") is not uncordon
    assert DRAIN not in objects.annotations(site.node("n0"))
    site.cancel(boss, drain)  # again: nothing else happens


def test_what_was_cordoned_before_stays_cordoned_when_a_drain_is_cancelled(site, boss):
    machines.act("n0", "cordon", "ada")
    drain = site.drain(boss, "n0", "n1")
    site.put("a", "n0", by=REPLICA_SET, labels={"app": "db"})
    site.budget("db", 1, app="db")
    site.look(3)
    assert site.row(drain, "n1").state == NodeState.DRAINED
    site.cancel(boss, drain, uncordon=True)
    site.look()
    assert (site.is_cordoned("n0"), site.is_cordoned("n1")) == (True, False)


def test_a_drain_that_has_ended_is_not_cancelled(site, boss):
    drain = site.until_done(site.drain(boss, "n0"))
    with pytest.raises(Conflict, match="has ended"):
        site.cancel(boss, drain)


def test_one_after_another(site, boss):
    for place in range(2):
        site.put(f"p{place}", f"n{place}", by=REPLICA_SET, labels={"app": "db"})
    site.budget("db", 1, app="db")
    drain = site.drain(boss, "n1", "n0", in_turn=True)
    site.look()
    assert (site.is_cordoned("n1"), site.is_cordoned("n0")) == (True, False)
    assert site.row(drain, "n0").state == NodeState.WAITING
    site.look(2)
    assert site.row(drain, "n1").state == NodeState.DRAINED
    site.look(2)
    assert (site.is_cordoned("n0"), site.on("n0")) == (True, {"p0"})  # the last of them is kept


def test_a_node_that_vanishes_in_the_middle_ends_its_part(site, boss):
    site.put("a", "n0", by=REPLICA_SET, labels={"app": "db"})
    site.budget("db", 1, app="db")
    drain = site.drain(boss, "n0", "n1")
    site.look()
    site.cluster.delete(NODE, "n0")
    site.look(2)
    drain.refresh_from_db()
    assert (drain.state, site.row(drain, "n0").state, site.row(drain, "n1").state) == ("done", "gone", "drained")


def test_another_node_of_the_name_is_left_alone(site, boss):
    drain = site.drain(boss, "n0")
    old = site.node("n0")
    site.cluster.delete(NODE, "n0")
    site.cluster.create(NODE, {key: old[key] for key in ("apiVersion", "kind")} | {"metadata": {"name": "n0"}, "spec": {}})
    site.put("a", "n0", by=REPLICA_SET)
    site.look(2)
    assert (site.row(drain, "n0").state, site.on("n0"), site.is_cordoned("n0")) == (NodeState.GONE, {"a"}, False)


def test_who_lets_the_node_take_pods_again_ends_its_drain(site, boss):
    site.put("a", "n0", by=REPLICA_SET, labels={"app": "db"})
    site.budget("db", 1, app="db")
    drain = site.drain(boss, "n0")
    site.look()
    site.cluster.patch(NODE, "n0", "", {"spec": {"unschedulable": None}})  # as kubectl uncordon does
    site.look()
    drain.refresh_from_db()
    assert (drain.state, site.row(drain, "n0").state, site.is_cordoned("n0")) == ("done", NodeState.REOPENED, False)
    assert DRAIN not in objects.annotations(site.node("n0"))


def test_two_admins_do_not_drain_one_node_twice(site, boss, make_user):
    first = site.drain(boss, "n0")
    with pytest.raises(Conflict, match="node n0 is drained already, by boss"):
        site.drain(make_user("other", staff=True), "n1", "n0")
    assert list(Drain.objects.all()) == [first]
    site.until_done(first)
    assert site.until_done(site.drain(boss, "n0", "n1")).state == DrainState.DONE


def test_of_two_workers_one_holds_a_drain_until_it_is_silent(site, boss):
    drain = site.drain(boss, "n0")
    other = Worker("two")
    assert [each.pk for each in site.worker.take()] == [drain.pk]
    assert other.take() == []
    Drain.objects.update(lease_until=Drain.objects.get().lease_until - 2 * LEASE)
    assert [each.pk for each in other.take()] == [drain.pk]
    site.worker.step(drain)  # the first wakes up: it is not its own any more
    assert not site.is_cordoned("n0")


class Died(BaseException):
    """The process is killed: nothing of ours runs any more."""


WRITES = ("patch", "evict_many", "create")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("verb", WRITES)
@pytest.mark.parametrize("number", [1, 2])
def test_a_portal_that_is_killed_anywhere_goes_on(site, boss, monkeypatch, verb, number, after):
    site.run("train", 2, gpu=2, cpu=1, node="n0")
    drain = site.drain(boss, "n0")
    calls = []
    plain = getattr(site.cluster, verb)

    def deadly(*args, **kwargs):
        calls.append(verb)
        if len(calls) == number and not after:
            raise Died
        found = plain(*args, **kwargs)
        if len(calls) == number:
            raise Died
        return found

    monkeypatch.setattr(site.cluster, verb, deadly)
    with contextlib.suppress(Died):
        site.look(4)
    monkeypatch.setattr(site.cluster, verb, plain)
    site.worker = Worker("next")
    Drain.objects.update(lease_until=None)
    drain = site.until_done(drain)
    assert (drain.state, site.going("n0"), site.is_cordoned("n0")) == (DrainState.DONE, set(), True)
    assert DRAIN not in objects.annotations(site.node("n0"))
    assert site.row(drain, "n0").was_cordoned is False


def test_a_cluster_that_does_not_answer_is_asked_again(site, boss, monkeypatch):
    site.put("a", "n0", by=REPLICA_SET)
    drain = site.drain(boss, "n0")
    site.look()
    plain = site.cluster.list

    def down(*args, **kwargs):
        raise Unavailable("no answer")

    monkeypatch.setattr(site.cluster, "list", down)
    site.worker.look()
    assert site.row(drain, "n0").trouble == "no answer"
    monkeypatch.setattr(site.cluster, "list", plain)
    assert site.until_done(drain).state == DrainState.DONE
    assert site.row(drain, "n0").trouble == ""


def test_node_and_jobs_are_told_once_who_did_it_and_why(site, boss):
    site.run("train", 2, gpu=2, cpu=1, node="n0")
    site.until_done(site.drain(boss, "n0"))
    told = {(event.about_kind, event.about_name, event.reason): event for event in Event.objects.all()}
    assert told["Node", "n0", "Draining"].message == f"by boss: {WHY}"
    assert told["Node", "n0", "Drained"].message == f"by boss: {WHY}"
    assert f"node n0 is drained by boss: {WHY}" in told["Job", "train", "NodeDraining"].message
    events = [event["reason"] for event in site.cluster.list(EVENT).items if event["involvedObject"]["name"] in ("n0", "train")]
    assert events.count("NodeDraining") == events.count("Draining") == events.count("Drained") == 1


def test_only_who_may_change_every_node_drains_it_or_cancels(site, boss, make_user):
    user = make_user("user")
    with pytest.raises(PermissionDenied):
        site.drain(user, "n0")
    with pytest.raises(PermissionDenied):
        site.drain(user, "none-such")
    with pytest.raises(NotFound):
        site.drain(boss, "n0", "none-such")
    drain = site.drain(boss, "n0")
    with pytest.raises(PermissionDenied):
        site.cancel(user, drain)
    assert Drain.objects.get().state == DrainState.RUNNING


@override_settings(BASALT_POLICY="tests.portal.maintenance.policies.OfOneRack")
def test_a_policy_may_give_somebody_some_nodes(site, make_user):
    user = make_user("keeper")
    assert site.drain(user, "n0")
    with pytest.raises(PermissionDenied):
        site.drain(user, "n0", "n1")


def test_what_is_wrong_is_told_at_once(site, boss):
    with pytest.raises(BadRequest) as refused:
        site.drain(boss, "n0", reason=" ", mode="wait-then-evict")
    assert [fault.pointer for fault in refused.value.fields] == ["/reason", "/deadline"]
    with pytest.raises(BadRequest) as refused:
        site.drain(boss, "n0", deadline=runtime.now() - timedelta(seconds=1))
    assert [fault.pointer for fault in refused.value.fields] == ["/deadline"]
    with pytest.raises(BadRequest):
        site.drain(boss)


def test_a_portal_without_the_rights_says_so_and_begins_nothing(site, boss, monkeypatch):
    monkeypatch.setattr(rights, "_known", None)
    monkeypatch.setattr(site.cluster, "may", lambda verb, kind, part: kind == NODE, raising=False)
    with pytest.raises(Forbidden, match="lacks the right to create pods/eviction"):
        site.drain(boss, "n0")
    assert rights.missing() == ("create pods/eviction",)
    monkeypatch.setattr(rights, "_known", None)


def test_the_constraint_holds_in_the_database_too(site, boss):
    drain = site.drain(boss, "n0")
    row = drain.nodes.get()
    row.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        row.save(force_insert=True)


def test_a_site_of_many_nodes_is_drained_at_once(db, boss):
    site = Site(nodes=5)
    try:
        site.run("train", 4, gpu=4, cpu=1)
        drain = site.until_done(site.drain(boss, "n0", "n1", "n2"))
        assert drain.state == DrainState.DONE
        assert site.running("train") == 4
        assert {pod["spec"]["nodeName"] for pod in site.world.running("train")} <= {"n3", "n4"}
    finally:
        site.close()
