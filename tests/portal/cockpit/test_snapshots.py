"""A snapshot carries no secret, and replays on a page and a terminal to what the live scheduler decides."""

from __future__ import annotations

import gzip
import json
from io import StringIO

import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.urls import reverse

from cluster import runtime
from cluster.clock import ManualClock
from cluster.kinds import CONFIG_MAP, NODE, POD, POD_GROUP, QUEUE
from portal.cockpit import snapshots
from portal.models import SchedulerConfiguration
from scheduler import conf
from scheduler.loop import SchedulerLoop
from scheduler.snapshot import Snapshot
from tests.scheduler.test_loop import add, cluster_with, nodes_of
from tests.scheduler.world import gang, node

pytestmark = pytest.mark.django_db
CONF = """\
actions: "allocate"
tiers:
- plugins:
  - name: gang
metrics:
  type: elasticsearch
  elasticsearch.password: hunter2
"""


@pytest.fixture
def cluster():
    made = cluster_with(node("n0", gpu=8), node("n1", gpu=8))
    pods = gang("a", 2, cpu=2, gpu=4)
    for obj in pods:
        if obj["kind"] == "Pod":
            obj["spec"]["containers"][0] |= {
                "env": [{"name": "KEY", "value": "hunter2"}],
                "command": ["sh", "-c", "echo hunter2"],
            }
    add(made, pods)
    made.create(CONFIG_MAP, {"metadata": {"name": "mine", "namespace": "default"}, "data": {"key": "hunter2"}})
    runtime.use(made)
    SchedulerConfiguration.objects.create(pk=1, text=CONF, since="2030-01-01T00:00:00Z")
    yield made
    runtime.use(None)


def test_secrets_are_left_out_and_the_decisions_are_the_same(cluster, settings):
    content = snapshots.take().dump()
    assert b"hunter2" not in content
    found = snapshots.replayed(content)
    clock, names = ManualClock(1_900_000_000.0), settings.BASALT_SCHEDULER_NAMES
    SchedulerLoop(cluster, conf.load(CONF), clock, scheduler_names=names).step()
    assert {pod.partition("/")[2]: where for pod, where, _ in found.binds} == nodes_of(cluster)
    held = {obj["metadata"]["name"]: obj["metadata"]["annotations"]["basalt.dev/gpu-indices"] for obj in cluster.list(POD).items}
    assert {pod.partition("/")[2]: gpus for pod, _, gpus in found.binds} == held


def test_the_moment_is_the_clusters(cluster):
    assert snapshots.take().at == runtime.now().timestamp()
    kinds = {NODE: "nodes", QUEUE: "queues", POD_GROUP: "pod_groups", POD: "pods"}
    taken = snapshots.take()
    assert {name: len(getattr(taken, name)) for name in kinds.values()} == {
        name: len(cluster.list(kind).items) for kind, name in kinds.items()
    }


@pytest.mark.parametrize("line", ["  elasticsearch.password: x", "- token: x", '  "my-secret": x', "    extender.credentials: x"])
def test_what_looks_like_a_secret_in_a_configuration_is_hidden(line):
    assert snapshots.without_secrets(f"a: 1\n{line}\nb: 2\n") == f'a: 1\n{line[:-2]} "(hidden)"\nb: 2\n'


@pytest.mark.parametrize(
    "metrics",
    [
        "metrics: {type: elasticsearch, elasticsearch.password: hunter2}",
        "metrics:\n  elasticsearch.password: |\n    hunter2\n  type: elasticsearch",
        "metrics:\n  elasticsearch.password:\n    hunter2\n  type: elasticsearch",
        'metrics:\n  "elasticsearch.password"  : "hunt\\\n    er2"\n  type: elasticsearch\n  # hunter2 was not written',
        "metrics:\n  type: elasticsearch\n  # elasticsearch.password: hunter2",
    ],
)
def test_a_secret_is_hidden_however_it_is_written(metrics):
    text = snapshots.without_secrets(CONF.partition("metrics:")[0] + metrics)
    assert "er2" not in text.replace("# hunter2 was not written", "")
    told = yaml.safe_load(text)
    assert told["metrics"]["type"] == "elasticsearch"
    assert told["tiers"] == yaml.safe_load(CONF)["tiers"]


NODE_WITHOUT = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    "content",
    [
        b'{"items": [1]}',
        b'{"items": {"a": 1}}',
        b'{"items": "abc"}',
        json.dumps({"items": [NODE_WITHOUT | {"metadata": "a"}]}).encode(),
        ("a: &a [%s]\nb: &b [%s]\nc: [%s]" % (",".join("x" * 999), ",".join(["*a"] * 999), ",".join(["*b"] * 9))).encode(),  # noqa: UP031
    ],
)
def test_a_file_that_is_no_snapshot_is_told(client, make_user, cluster, content):
    client.force_login(make_user("root-of-all", staff=True))
    page = client.post(reverse("cockpit:snapshot"), {"snapshot": SimpleUploadedFile("s.json", content)})
    assert page.status_code == 422
    assert page.context["error"]


def test_the_page_gives_it_out_and_replays_it(client, make_user, cluster):
    client.force_login(make_user("boss", staff=True))
    content = client.get(reverse("cockpit:snapshot_file")).content
    assert Snapshot.load(gzip.decompress(content)).at
    assert snapshots.load(content) == snapshots.load(gzip.decompress(content))
    html = client.post(reverse("cockpit:snapshot"), {"snapshot": SimpleUploadedFile("s.json", content)}).content.decode()
    assert "default/a-w-0" in html
    other = {"snapshot": SimpleUploadedFile("s.json", content), "conf": 'actions: "backfill"\ntiers: []\n'}
    assert "Pods placed: 0" in client.post(reverse("cockpit:snapshot"), other).content.decode()
    cut = {"snapshot": SimpleUploadedFile("s.gz", content[:-20])}
    bomb = {"snapshot": SimpleUploadedFile("s.gz", gzip.compress(b" " * (snapshots.UNPACKED + 1), 1))}
    for given in (
        {},
        {"snapshot": SimpleUploadedFile("s.json", b"{[")},
        cut,
        bomb,
        {**other, "conf": "actions: nothing\ntiers: []\n"},
    ):
        if "conf" in given:
            given["snapshot"] = SimpleUploadedFile("s.json", content)
        assert client.post(reverse("cockpit:snapshot"), given).status_code == 422


def test_the_command_replays_a_file(cluster, tmp_path):
    path = tmp_path / "snapshot.json"
    path.write_bytes(snapshots.take().dump())
    said = StringIO()
    call_command("replay", str(path), stdout=said)
    assert said.getvalue().splitlines()[0] == "Cycle 1: 2 bound, 0 evicted, 0 wait"
    said = StringIO()
    call_command("replay", str(path), "-o", "json", "--cycles", "2", stdout=said)
    first, second = json.loads(said.getvalue())
    assert [len(first["binds"]), len(second["binds"])] == [2, 0]
    path.write_text("{[")
    with pytest.raises(CommandError):
        call_command("replay", str(path))
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("replay", str(tmp_path / "none.json"))
