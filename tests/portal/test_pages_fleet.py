"""Pages of GPUs, nodes and queues: what they show, their queries, whom they let in, and what they do with bad input."""

import json
import re

import pytest
from django.urls import reverse

from cluster import machines, queries, runtime
from cluster.errors import NotFound
from cluster.kinds import COMMAND, NODE, QUEUE
from cluster.models import Node
from jobs.models import Job, Pod
from queues.models import Queue
from queues.queries import tree
from tests import factories, fleet_rows

pytestmark = pytest.mark.django_db(databases=["default", "cluster"])


@pytest.fixture
def fleet(db):
    cluster = fleet_rows.demo_cluster()
    runtime.use(cluster)
    fleet_rows.occupy()
    fleet_rows.shares(steps=20)
    yield cluster
    runtime.use(None)


@pytest.fixture
def staff(client, make_user):
    client.force_login(make_user("root-admin", staff=True), "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def member(client, make_user):
    client.force_login(make_user("ivo"), "django.contrib.auth.backends.ModelBackend")
    return client


PAGES = ("cluster:gpus", "cluster:nodes", "queues:list", "jobs:submit")


@pytest.mark.parametrize("name", PAGES)
def test_whoever_is_not_signed_in_sees_no_page(client, name):
    response = client.get(reverse(name))
    assert response.status_code == 302
    assert response["Location"].startswith(reverse("login"))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_an_empty_cluster_says_so_and_does_not_break(member, name):
    runtime.use(fleet_rows.EmbeddedCluster())
    assert member.get(reverse(name)).status_code == 200
    runtime.use(None)


def heatmap(response):
    """The nodes of the page's compact fleet: name → states of its GPUs, and the jobs' uids beside them."""
    data = json.loads(re.search(r'<script id="hm-data"[^>]*>(.*?)</script>', response.content.decode(), re.DOTALL)[1])
    states = [letter for letter, times in re.findall(r"([a-z])(\d*)", data["cells"]["state"]) for _ in range(int(times or 1))]
    jobs = [data["jobs"][job][0] for job in spelt(data["holders"]["job"])]
    held = [jobs[holder] if holder >= 0 else None for holder in spelt(data["cells"]["holder"])]
    found, at = {}, 0
    for name, size in zip(data["nodes"]["name"], spelt(data["nodes"]["size"]), strict=True):
        found[name] = list(zip(states[at : at + size], held[at : at + size], strict=True))
        at += size
    return found


def spelt(runs):
    return [value for value, times in zip(runs[::2], runs[1::2], strict=True) for _ in range(times)]


def test_the_heatmap_has_every_gpu_with_its_state_and_job(member, fleet):
    nodes = heatmap(member.get(reverse("cluster:gpus")))
    assert set(nodes) == set(Node.objects.filter(gpu_count__gt=0).values_list("name", flat=True))
    pod = next(pod for pod in Pod.objects.filter(phase="Running") if Node.objects.get(name=pod.node).ready)
    healthy = [gpu for gpu in pod.gpus if gpu not in Node.objects.get(name=pod.node).gpu_unhealthy]
    assert {nodes[pod.node][gpu] for gpu in healthy} == {("a", pod.job_uid)}


def test_states_that_are_no_use_to_anybody_are_told_apart(fleet):
    found = {strip.node.name: strip for strip in queries.fleet(_Known()).strips}
    lost, cordoned = Node.objects.get(ready=False), Node.objects.get(cordoned=True)
    assert {cell.state for cell in found[lost.name].cells} == {"not_ready"}
    assert "free" not in {cell.state for cell in found[cordoned.name].cells}
    broken = Node.objects.exclude(gpu_unhealthy=[]).first()
    assert found[broken.name].cells[2].state == "unhealthy"
    Node.objects.filter(pk=lost.pk).update(heard=False)
    silent = next(strip for strip in queries.fleet(_Known()).strips if strip.node.name == lost.name)
    assert {cell.state for cell in silent.cells} == {"unknown"}


class _Known:
    is_authenticated = is_active = True
    is_staff = False


def test_the_table_says_what_the_heatmap_draws(member, fleet):
    page = member.get(reverse("cluster:gpus") + "?view=table").content.decode()
    assert "<canvas" not in page
    pod = Pod.objects.filter(phase="Running").first()
    assert reverse("jobs:detail", args=[pod.job_uid]) in page


@pytest.mark.parametrize("path", ["/gpus/", "/nodes/", "/nodes/?sort=-used", "/queues/", "/queues/?resource=cpu"])
def test_more_rows_take_no_more_queries(member, fleet, path, django_assert_max_num_queries):
    factories.save([factories.queue(f"first-{n}") for n in range(7)])  # more than there are colours: some are the others
    member.get(path)  # what is cached once is cached now
    with django_assert_max_num_queries(24) as few:
        member.get(path)
    fleet_rows.large_fleet(300)
    factories.save([factories.queue(f"team-{n}") for n in range(60)])
    fleet_rows.occupy(seed=9)
    with django_assert_max_num_queries(len(few)):
        assert member.get(path).status_code == 200


def test_eight_thousand_gpus_are_one_page(member, db):
    fleet_rows.large_fleet(1000)
    fleet_rows.occupy()
    response = member.get(reverse("cluster:gpus"))
    assert sum(map(len, heatmap(response).values())) == 8000
    assert len(response.content) < 250_000


def test_names_from_outside_are_escaped(member, fleet):
    evil = '<img src=x onerror="alert(1)">'
    node = factories.node("evil-1", rack=evil, spine="</script><script>alert(1)</script>", gpu_model=evil)
    factories.save([node])
    for path in ("/gpus/", "/gpus/?view=table", "/nodes/?q=evil", "/nodes/evil-1/", f"/nodes/?q={evil}"):
        page = member.get(path).content.decode()
        assert "<img src=x" not in page
        assert "<script>alert(1)" not in page


@pytest.mark.parametrize(
    "query", ["?sort=nonsense", "?sort=-", "?page=abc", "?page=99999", "?state=zzz", "?rack=%00", "?model=%27%3B--"]
)
def test_a_nonsense_query_is_still_a_page(member, fleet, query):
    assert member.get("/nodes/" + query).status_code == 200
    assert member.get("/queues/" + query).status_code == 200
    assert member.get("/gpus/" + query).status_code == 200


def test_nodes_are_filtered_and_sorted(member, fleet):
    page = member.get("/nodes/?q=h100&sort=-name").content.decode()
    names = re.findall(r'class="name" href="/nodes/([^/]+)/"', page)
    assert names == sorted((name for name in names), reverse=True)
    assert names
    assert all(name.startswith("h100") for name in names)


def test_a_node_page_shows_its_gpus_links_and_pods(member, fleet):
    pod = Pod.objects.filter(phase="Running").first()
    page = member.get(reverse("cluster:node", args=[pod.node])).content.decode()
    assert pod.name in page
    assert "NV" in page or "SYS" in page or "PIX" in page
    assert member.get("/nodes/nobody/").status_code == 404


def test_the_tree_adds_children_up_and_survives_a_loop(fleet):
    rows = [
        factories.queue("root"),
        factories.queue("a", parent="b"),
        factories.queue("b", parent="a"),
        factories.queue("c", parent="gone"),
    ]
    rows[3].share_allocated = {"cpu": 2000}
    branches = tree(rows, ["cpu"], {"cpu": 9000})
    assert {branch.queue.name for branch in branches} == {"root", "a", "b", "c"}
    assert branches[0].bars[0].allocated == 2000
    assert branches[0].bars[0].capability == 9000


def test_members_look_at_queues_and_only_staff_change_them(member, fleet):
    page = member.get("/queues/prod/").content.decode()
    assert "/queues/prod/edit/" not in page
    for path in ("/queues/new/", "/queues/prod/edit/", "/queues/prod/delete/"):
        assert member.get(path).status_code == 403
    assert member.post("/queues/prod/actions/close/").status_code == 403
    assert member.post("/queues/prod/delete/").status_code == 403
    assert fleet.get(QUEUE, "prod")["spec"]["weight"] == 3


def inputs(page):
    """What a browser would post of the queue form."""
    found = {}
    for tag in re.findall(r"<input [^>]*>", page):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and name[1] not in ("csrfmiddlewaretoken", "theme", "next", "language"):
            found[name[1]] = value[1] if value else ""
    found["reclaimable"] = "yes"
    return found


def test_a_queue_is_created_changed_and_shown_at_once(staff, fleet):
    form = inputs(staff.get("/queues/new/").content.decode())
    answer = staff.post("/queues/new/", form | {"name": "audio", "weight": "2", "capability.nvidia.com/gpu": "16"}, follow=True)
    assert answer.status_code == 200, answer.content.decode()[-3000:]
    assert fleet.get(QUEUE, "audio")["spec"]["capability"] == {"nvidia.com/gpu": "16"}
    assert Queue.objects.get(name="audio").weight == 2
    form = inputs(staff.get("/queues/audio/edit/").content.decode())
    staff.post(
        "/queues/audio/edit/",
        form
        | {"weight": "5", "capability.nvidia.com/gpu": "", "capability.new": "4", "resource.new": "example.com/fpga"}
        | {"step": "save"},
    )
    spec = fleet.get(QUEUE, "audio")["spec"]
    assert spec["weight"] == 5
    assert spec["capability"] == {"example.com/fpga": "4"}
    assert Queue.objects.get(name="audio").weight == 5


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("capability.cpu", "2cpus"),
        ("capability.memory", "-1"),
        ("weight", "many"),
        ("weight", "0"),
        ("parent", "nowhere"),
        ("guarantee.cpu", "1_000"),
    ],
)
def test_a_fault_in_a_queue_stands_at_its_field_and_changes_nothing(staff, fleet, field, value):
    form = inputs(staff.get("/queues/prod/edit/").content.decode())
    before = fleet.get(QUEUE, "prod")
    answer = staff.post("/queues/prod/edit/", form | {field: value})
    assert answer.status_code == 422
    page = answer.content.decode()
    box = re.search(rf'name="{re.escape(field)}"[^>]*>', page)[0]
    assert 'aria-invalid="true"' in box
    assert f'value="{value}"' in box
    assert fleet.get(QUEUE, "prod") == before


def test_a_conflict_says_what_the_other_changed_and_keeps_my_change(staff, fleet):
    form = inputs(staff.get("/queues/prod/edit/").content.decode())
    fleet.patch(QUEUE, "prod", "", {"spec": {"priority": 7}})
    answer = staff.post("/queues/prod/edit/", form | {"weight": "9"})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "does not touch theirs" in page
    assert fleet.get(QUEUE, "prod")["spec"]["weight"] == 3
    staff.post("/queues/prod/edit/", inputs(page) | {"step": "save"})
    assert fleet.get(QUEUE, "prod")["spec"]["weight"] == 9
    assert fleet.get(QUEUE, "prod")["spec"]["priority"] == 7


def test_closing_makes_a_command_and_deleting_asks_first(staff, fleet):
    staff.post("/queues/teaching/actions/close/")
    assert [c["action"] for c in fleet.list(COMMAND).items] == ["CloseQueue"]
    assert staff.post("/queues/teaching/actions/explode/").status_code == 404
    assert staff.get("/queues/teaching/actions/close/").status_code == 405
    staff.get("/queues/teaching/delete/")
    assert fleet.get(QUEUE, "teaching")
    staff.post("/queues/teaching/delete/")
    with pytest.raises(NotFound):
        fleet.get(QUEUE, "teaching")
    assert Queue.objects.get(name="teaching").deleted_at is not None
    assert staff.post("/queues/root/delete/").status_code == 403
    assert staff.post("/queues/research/delete/").status_code == 403
    assert fleet.get(QUEUE, "research")


def test_the_admin_writes_queues_to_the_cluster(staff, fleet, make_user, client):
    client.force_login(_super(make_user), "django.contrib.auth.backends.ModelBackend")
    add = reverse("admin:queues_queue_add")
    form = {
        "name": "audio",
        "parent": "root",
        "weight": "2",
        "priority": "0",
        "reclaimable": "on",
        "capability": "nvidia.com/gpu: 8\ncpu: 100",
    }
    assert client.post(add, form).status_code == 302
    assert fleet.get(QUEUE, "audio")["spec"]["capability"] == {"nvidia.com/gpu": "8", "cpu": "100"}
    change = reverse("admin:queues_queue_change", args=[Queue.objects.get(name="audio").pk])
    version = fleet.get(QUEUE, "audio")["metadata"]["resourceVersion"]
    answer = client.post(change, form | {"weight": "4", "capability": "cpu: 2cpus", "version": version})
    assert answer.status_code == 200
    assert fleet.get(QUEUE, "audio")["spec"]["weight"] == 2
    assert client.post(change, form | {"weight": "4", "capability": "cpu: 50", "version": version}).status_code == 302
    assert fleet.get(QUEUE, "audio")["spec"]["capability"] == {"cpu": "50"}
    assert client.post(change, form | {"weight": "6", "version": version}).status_code == 200  # an old version
    assert fleet.get(QUEUE, "audio")["spec"]["weight"] == 4
    client.post(reverse("admin:queues_queue_delete", args=[Queue.objects.get(name="audio").pk]), {"post": "yes"})
    with pytest.raises(NotFound):
        fleet.get(QUEUE, "audio")


def test_the_admin_shows_jobs_and_nodes_without_letting_anybody_change_them(fleet, make_user, client):
    client.force_login(_super(make_user), "django.contrib.auth.backends.ModelBackend")
    for model, row in (
        ("jobs_job", Job.objects.first()),
        ("cluster_node", Node.objects.first()),
        ("jobs_pod", Pod.objects.first()),
    ):
        assert client.get(reverse(f"admin:{model}_changelist")).status_code == 200
        assert client.get(reverse(f"admin:{model}_change", args=[row.pk])).status_code == 200
        assert client.post(reverse(f"admin:{model}_change", args=[row.pk]), {"name": "x"}).status_code == 403
        assert client.get(reverse(f"admin:{model}_add")).status_code == 403


def _super(make_user):
    user = make_user("super", staff=True)
    user.is_superuser = True
    user.save()
    return user


def test_nodes_sorted_by_state_begin_with_those_that_are_not_well(fleet, member):
    Node.objects.update(ready=True, cordoned=False)
    Node.objects.filter(name="v100-01").update(ready=False)
    Node.objects.filter(name="h100-05").update(cordoned=True)
    for sort, first in (("state", ["v100-01", "h100-05", "a100-01"]), ("-state", ["a100-01", "a100-02", "a100-03"])):
        rows = member.get(reverse("cluster:nodes"), {"sort": sort}).context["rows"]
        assert [node.name for node, _use, _parts in rows][:3] == first


class _Simulation:
    """Stands in for the kubelet: says what it was asked."""

    def __init__(self):
        self.asked = []

    def lose_node(self, node):
        self.asked.append(("lose", node))

    def recover_node(self, node):
        self.asked.append(("recover", node))


@pytest.fixture
def simulation():
    found = _Simulation()
    machines.simulate(found)
    yield found
    machines.simulate(None)


def test_staff_cordon_a_node_and_let_it_take_pods_again(fleet, staff):
    where = reverse("cluster:node_action", args=["cpu-01", "cordon"])
    assert "is cordoned" in staff.post(where, follow=True).content.decode()
    assert Node.objects.get(name="cpu-01").cordoned
    assert fleet.get(NODE, "cpu-01")["spec"]["unschedulable"] is True
    page = staff.post(reverse("cluster:node_action", args=["cpu-01", "uncordon"]), follow=True).content.decode()
    assert "takes pods again" in page
    assert not Node.objects.get(name="cpu-01").cordoned


def test_staff_take_a_simulated_node_down_and_bring_it_back(fleet, staff, simulation):
    assert "Take down (simulated)" in staff.get(reverse("cluster:node", args=["cpu-01"])).content.decode()
    for action in ("lose", "recover"):
        staff.post(reverse("cluster:node_action", args=["cpu-01", action]))
    assert simulation.asked == [("lose", "cpu-01"), ("recover", "cpu-01")]


def test_real_machines_cannot_be_taken_down(fleet, staff):
    assert "Take down" not in staff.get(reverse("cluster:node", args=["cpu-01"])).content.decode()
    answer = staff.post(reverse("cluster:node_action", args=["cpu-01", "lose"]), follow=True)
    assert "only simulated ones can be lost" in answer.content.decode()


def test_only_staff_act_on_nodes(fleet, member, simulation):
    page = member.get(reverse("cluster:node", args=["cpu-01"])).content.decode()
    assert "Take down" not in page
    assert "Cordon" not in page
    assert member.post(reverse("cluster:node_action", args=["cpu-01", "lose"])).status_code == 403
    assert simulation.asked == []


@pytest.mark.parametrize(("name", "action"), [("no-such", "cordon"), ("cpu-01", "explode")])
def test_an_action_on_what_does_not_exist_is_not_found(fleet, staff, name, action):
    assert staff.post(reverse("cluster:node_action", args=[name, action])).status_code == 404
