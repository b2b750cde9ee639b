"""Nodes that are acted on: over REST, and by the embedded cluster's own kubelet."""

import pytest

from cluster import machines, runtime
from cluster.embedded.fates import INSTANT
from cluster.embedded.kubelet import Kubelet
from cluster.models import Node
from tests import fleet_rows
from tests.portal.rest import Api, problem

pytestmark = pytest.mark.django_db(databases="__all__")


@pytest.fixture
def fleet():
    cluster = fleet_rows.demo_cluster()
    runtime.use(cluster)
    kubelet = Kubelet(cluster, timing=INSTANT)
    machines.simulate(kubelet)
    yield cluster
    machines.simulate(None)
    kubelet.close()
    runtime.use(None)


@pytest.fixture
def root(make_user):
    return Api(make_user("root", staff=True))


def test_a_lost_node_is_not_ready_at_once_and_comes_back(fleet, root):
    lost = root.post("nodes/h100-01/actions/lose")
    assert (lost.status_code, lost.json()["ready"]) == (202, False)
    assert {taint["key"] for taint in lost.json()["taints"]} == {"node.kubernetes.io/unreachable"}
    assert not Node.objects.get(name="h100-01").ready
    back = root.post("nodes/h100-01/actions/recover").json()
    assert (back["ready"], back["taints"]) == (True, [])


def test_a_cordoned_node_says_so(fleet, root):
    assert root.post("nodes/h100-01/actions/cordon").json()["cordoned"] is True
    assert root.post("nodes/h100-01/actions/uncordon").json()["cordoned"] is False


def test_only_staff_act_on_nodes(fleet, make_user):
    problem(Api(make_user("ada")).post("nodes/h100-01/actions/lose"), 403)
    assert Node.objects.get(name="h100-01").ready


@pytest.mark.parametrize("path", ["nodes/none/actions/lose", "nodes/h100-01/actions/explode"])
def test_what_does_not_exist_is_not_found(fleet, root, path):
    problem(root.post(path), 404)


def test_real_machines_are_not_lost_on_request(fleet, root):
    machines.simulate(None)
    problem(root.post("nodes/h100-01/actions/lose"), 409)
    assert Node.objects.get(name="h100-01").ready
