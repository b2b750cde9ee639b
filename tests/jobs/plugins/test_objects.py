"""The objects that plugins make: exactly these, before the first pod, the job's own, and nobody else's."""

import base64

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_public_key

from cluster.errors import Forbidden, Unavailable
from cluster.kinds import COMMAND, CONFIG_MAP, EVENT, JOB, NETWORK_POLICY, POD, SECRET, SERVICE
from cluster.objects import name, uid
from jobs import held
from jobs.plugins import limits, svc
from jobs.plugins.tensorflow import Tensorflow
from tests.jobs.world import World, command, job, task

ALL = (SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY)


@pytest.fixture
def world():
    return World()


def names(world, *kinds):
    return {f"{kind.kind}/{name(obj)}" for kind in kinds or ALL for obj in world.cluster.list(kind).items}


def submit(world, title="lm", *tasks, **plugins):
    roles = tasks or (task("master", 1), task("worker", 2))
    return world.cluster.create(JOB, job(title, *roles, plugins=plugins))


def find(world, kind, title):
    return world.cluster.get(kind, title, "default")


def files(world, title="lm-ssh"):
    return {key: base64.b64decode(value).decode() for key, value in find(world, SECRET, title)["data"].items()}


def ask(world, made, action):
    world.cluster.create(COMMAND, command(made, action))


def told(world, reason="PluginError"):
    return [event["message"] for event in world.cluster.list(EVENT).items if event["reason"] == reason]


def resources(world, title="lm"):
    return find(world, JOB, title)["status"].get("controlledResources", {})


class TestSvc:
    def test_a_headless_service_of_the_jobs_pods(self, world):
        submit(world, svc=["--publish-not-ready-addresses"])
        world.turn()
        assert find(world, SERVICE, "lm")["spec"] == {
            "type": "ClusterIP",
            "clusterIP": "None",
            "selector": {"volcano.sh/job-name": "lm", "volcano.sh/job-namespace": "default"},
            "publishNotReadyAddresses": True,
        }
        selector = find(world, SERVICE, "lm")["spec"]["selector"].items()
        assert all(selector <= pod["metadata"]["labels"].items() for pod in world.pods())
        assert len(world.pods()) == 3

    def test_pods_are_reached_by_pods_of_the_job_alone(self, world):
        submit(world, svc=[])
        world.turn()
        peers = {"matchLabels": {"volcano.sh/job-name": "lm", "volcano.sh/job-namespace": "default"}}
        assert find(world, NETWORK_POLICY, "lm")["spec"] == {
            "podSelector": peers, "ingress": [{"from": [{"podSelector": peers}]}], "policyTypes": ["Ingress"],
        }  # fmt: skip

    def test_the_hosts_of_every_role(self, world):
        submit(world, "lm", task("ps", 1), task("big-worker", 2), task("none", 0), svc=[])
        world.turn()
        assert find(world, CONFIG_MAP, "lm-svc")["data"] == {
            "ps.host": "lm-ps-0.lm",
            "VC_PS_HOSTS": "lm-ps-0.lm",
            "VC_PS_NUM": "1",
            "big_worker.host": "lm-big-worker-0.lm\nlm-big-worker-1.lm",
            "VC_BIG_WORKER_HOSTS": "lm-big-worker-0.lm,lm-big-worker-1.lm",
            "VC_BIG_WORKER_NUM": "2",
            "none.host": "",
            "VC_NONE_HOSTS": "",
            "VC_NONE_NUM": "0",
        }

    def test_a_template_with_a_hostname_stands_there_once(self, world):
        fixed = task("a", 3)
        fixed["template"]["spec"] |= {"hostname": "h", "subdomain": "s"}
        submit(world, "lm", fixed, svc=[])
        world.turn()
        data = find(world, CONFIG_MAP, "lm-svc")["data"]
        assert (data["a.host"], data["VC_A_NUM"]) == ("h.s", "1")

    def test_no_network_policy_when_told_so(self, world):
        submit(world, svc=["--disable-network-policy=true"])
        world.turn()
        assert names(world) == {"Service/lm", "ConfigMap/lm-svc"}

    def test_the_hosts_follow_the_replicas_and_nothing_else_does(self, world):
        submit(world, svc=[], ssh=[])
        world.turn()
        before = {kind: find(world, kind, title) for kind, title in ((SERVICE, "lm"), (SECRET, "lm-ssh"), (NETWORK_POLICY, "lm"))}
        world.cluster.patch(
            JOB, "lm", "default", [{"op": "replace", "path": "/spec/tasks/1/replicas", "value": 3}], patch_type="json"
        )
        world.turn()
        assert find(world, CONFIG_MAP, "lm-svc")["data"]["VC_WORKER_HOSTS"] == "lm-worker-0.lm,lm-worker-1.lm,lm-worker-2.lm"
        assert {kind: find(world, kind, name(obj)) for kind, obj in before.items()} == before
        version = find(world, CONFIG_MAP, "lm-svc")["metadata"]["resourceVersion"]
        world.end("lm-worker-0")
        world.turn()
        assert find(world, CONFIG_MAP, "lm-svc")["metadata"]["resourceVersion"] == version

    def test_hosts_that_somebody_deleted_are_written_again(self, world):
        submit(world, svc=[])
        world.turn()
        world.cluster.delete(CONFIG_MAP, "lm-svc", "default")
        world.end("lm-worker-0")
        world.turn()
        assert find(world, CONFIG_MAP, "lm-svc")["data"]["VC_WORKER_NUM"] == "2"


def test_pods_made_after_a_scaling_know_the_new_cluster(world):
    submit(world, "lm", task("ps", 1), task("worker", 2), tensorflow=[])
    world.turn()
    scale = [{"op": "replace", "path": "/spec/tasks/1/replicas", "value": 3}]
    world.cluster.patch(JOB, "lm", "default", scale, patch_type="json")
    world.turn()
    known = {}
    for pod in world.pods():
        [config] = [each["value"] for each in pod["spec"]["containers"][0]["env"] if each["name"] == "TF_CONFIG"]
        known[name(pod)] = config.count("lm-worker-")
    assert known == {"lm-ps-0": 2, "lm-worker-0": 2, "lm-worker-1": 2, "lm-worker-2": 3}


class TestSsh:
    def test_a_pair_of_keys_and_a_list_of_hosts(self, world):
        submit(world, ssh=[])
        world.turn()
        found = files(world)
        assert find(world, SECRET, "lm-ssh")["type"] == "Opaque"
        assert list(found) == ["id_rsa", "id_rsa.pub", "authorized_keys", "config"]
        assert found["id_rsa"].startswith("-----BEGIN RSA PRIVATE KEY-----\n")
        key = load_pem_private_key(found["id_rsa"].encode(), None)
        assert key.key_size == 2048
        assert load_ssh_public_key(found["id_rsa.pub"].encode()).public_numbers() == key.public_key().public_numbers()
        assert found["authorized_keys"] == found["id_rsa.pub"]
        assert found["id_rsa.pub"].endswith("\n")

    @pytest.mark.parametrize(
        ("arguments", "port"),
        [([], 22), (["--ssh-port=2026"], 2026), (["--ssh-port=-10"], 22), (["--ssh-port=65536"], 22), (["--ssh-port=0"], 22)],
    )
    def test_the_list_of_hosts(self, world, arguments, port):
        fixed = task("fixed", 2)
        fixed["template"]["spec"] |= {"hostname": "h", "subdomain": "s"}
        submit(world, "lm", task("w", 2), fixed, ssh=arguments)
        world.turn()
        assert files(world)["config"] == (
            "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
            f"Host lm-w-0\n  HostName lm-w-0.lm\n  Port {port}\n"
            f"Host lm-w-1\n  HostName lm-w-1.lm\n  Port {port}\n"
            f"Host h\n  HostName h.s\n  Port {port}\n"
        )

    def test_keys_that_are_given_are_taken_as_they_are(self, world):
        submit(world, ssh=["--ssh-private-key=private\\n", "--ssh-public-key=public"])
        world.turn()
        found = files(world)
        assert [found[file] for file in ("id_rsa", "id_rsa.pub", "authorized_keys")] == ["private\\n", "public", "public"]

    def test_a_public_key_alone_is_not_taken(self, world):
        submit(world, ssh=["--ssh-public-key=public"])
        world.turn()
        assert files(world)["id_rsa.pub"].startswith("ssh-rsa AAAA")

    @pytest.mark.parametrize("action", ["RestartJob", "AbortJob"])
    def test_the_keys_are_made_once_a_job(self, world, action):
        made = submit(world, ssh=[], svc=[])
        world.turn()
        before, secret = files(world), uid(find(world, SECRET, "lm-ssh"))
        for asked in (action, "ResumeJob"):
            ask(world, made, asked)
            world.turn()
        assert find(world, JOB, "lm")["status"]["state"]["phase"] == "Running"
        assert (files(world), uid(find(world, SECRET, "lm-ssh"))) == (before, secret)

    def test_two_jobs_have_different_keys(self, world):
        submit(world, "a", ssh=[])
        submit(world, "b", ssh=[])
        world.turn()
        assert files(world, "a-ssh")["id_rsa"] != files(world, "b-ssh")["id_rsa"]


def test_rays_head_is_a_service(world):
    submit(world, "rc", task("head", 1), task("worker", 2), ray=["--port=7", "--dashboardPort=8", "--clientPort=9"])
    world.turn()
    assert find(world, SERVICE, "rc-head-svc")["spec"] == {
        "type": "ClusterIP",
        "selector": {"volcano.sh/job-name": "rc", "volcano.sh/job-namespace": "default", "volcano.sh/task-spec": "head"},
        "ports": [
            {"name": "gcs", "port": 7, "targetPort": "gcs", "protocol": "TCP"},
            {"name": "dashboard", "port": 8, "targetPort": "dashboard", "protocol": "TCP"},
            {"name": "client-server", "port": 9, "targetPort": "client-server", "protocol": "TCP"},
        ],
    }


@pytest.mark.parametrize(
    ("plugins", "made", "recorded"),
    [
        (["env"], set(), ["env"]),
        (["svc"], {"Service/lm", "ConfigMap/lm-svc", "NetworkPolicy/lm"}, ["svc"]),
        (["ssh"], {"Secret/lm-ssh"}, ["ssh"]),
        (["mpi"], {"Service/lm", "ConfigMap/lm-svc", "NetworkPolicy/lm", "Secret/lm-ssh"}, ["svc", "ssh", "mpi"]),
        (["tensorflow"], {"Service/lm", "ConfigMap/lm-svc", "NetworkPolicy/lm"}, ["svc", "tensorflow"]),
        (["pytorch", "hcclrank"], {"Service/lm", "ConfigMap/lm-svc", "NetworkPolicy/lm"}, ["svc", "pytorch"]),
    ],
)
def test_what_is_made_belongs_to_the_job_is_there_before_its_pods_and_goes_with_it(world, plugins, made, recorded):
    owner = submit(world, "lm", **dict.fromkeys(plugins, ()))
    world.settle()
    assert names(world) == made
    assert world.pods() == []
    for kind in ALL:
        for obj in world.cluster.list(kind).items:
            [reference] = obj["metadata"]["ownerReferences"]
            assert (reference["uid"], reference["controller"], reference["kind"]) == (uid(owner), True, "Job")
    assert resources(world) == {f"plugin-{each}": each for each in recorded}
    world.turn()
    assert len(world.pods()) == 3
    world.cluster.delete(JOB, "lm", "default")
    world.turn()
    assert names(world, *ALL, POD) == set()


@pytest.mark.parametrize("how", ["Completed", "Failed", "Terminated"])
def test_a_job_that_has_ended_for_good_keeps_nothing_of_it(world, how):
    made = submit(world, svc=[], ssh=[], env=[])
    world.turn()
    if how == "Terminated":
        ask(world, made, "TerminateJob")
    else:
        for pod in ("lm-master-0", "lm-worker-0", "lm-worker-1"):
            world.end(pod, exit_code=how == "Failed")
    world.turn()
    assert find(world, JOB, "lm")["status"]["state"]["phase"] == how
    assert names(world) == set()
    assert not any(key.startswith("plugin-") for key in resources(world))


def test_a_suspended_job_keeps_what_it_has(world):
    made = submit(world, mpi=[])
    world.turn()
    before = names(world)
    ask(world, made, "AbortJob")
    world.turn()
    assert find(world, JOB, "lm")["status"]["state"]["phase"] == "Aborted"
    assert names(world) == before


FOREIGN = {
    CONFIG_MAP: ("lm-svc", {"data": {"key": "value"}}),
    SECRET: ("lm-ssh", {"type": "Opaque", "data": {"key": "dmFsdWU="}}),
    SERVICE: ("lm", {"spec": {"type": "ClusterIP", "clusterIP": "None", "selector": {"a": "b"}}}),
    NETWORK_POLICY: ("lm", {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}),
}


@pytest.mark.parametrize("kind", [CONFIG_MAP, SECRET], ids=str)
def test_what_the_pods_need_is_waited_for_while_somebody_elses_has_its_name(world, kind):
    title, body = FOREIGN[kind]
    foreign = world.cluster.create(kind, {"metadata": {"name": title, "namespace": "default"}, **body})
    submit(world, mpi=[])
    world.turn()
    assert find(world, kind, title) == foreign
    assert world.pods() == []
    plugin = "svc" if kind == CONFIG_MAP else "ssh"
    said = (
        f"plugin {plugin}: {kind.kind} {title} belongs to somebody else and is left alone; the job waits until the name is free"
    )
    assert told(world) == [said]
    why = held.verdict(find(world, JOB, "lm"))
    assert (why["code"], why["kind"], why["object"], why["plugin"]) == ("plugin.taken", kind.kind, title, plugin)

    world.cluster.delete(kind, title, "default")
    world.clock.advance(5)
    world.turn()
    assert len(world.pods()) == 3
    assert held.verdict(find(world, JOB, "lm")) is None
    assert held.HELD not in resources(world)


@pytest.mark.parametrize("kind", [SERVICE, NETWORK_POLICY], ids=str)
def test_what_the_pods_can_do_without_is_left_alone_and_told(world, kind):
    title, body = FOREIGN[kind]
    foreign = world.cluster.create(kind, {"metadata": {"name": title, "namespace": "default"}, **body})
    submit(world, mpi=[])
    world.turn()
    assert find(world, kind, title) == foreign
    assert len(world.pods()) == 3
    assert told(world) == [f"plugin svc: {kind.kind} lm belongs to somebody else and is left alone; the job goes on with it"]
    world.cluster.delete(JOB, "lm", "default")
    world.turn()
    assert find(world, kind, title) == foreign


def test_hosts_that_somebody_put_in_the_place_of_the_jobs_stop_nothing(world):
    submit(world, svc=[])
    world.turn()
    world.cluster.delete(CONFIG_MAP, "lm-svc", "default")
    foreign = world.cluster.create(CONFIG_MAP, {"metadata": {"name": "lm-svc"}, "data": {"a": "b"}})
    scale = [{"op": "replace", "path": "/spec/tasks/1/replicas", "value": 3}]
    world.cluster.patch(JOB, "lm", "default", scale, patch_type="json")
    world.turn()
    assert find(world, CONFIG_MAP, "lm-svc") == foreign
    assert len(world.pods()) == 4
    [message] = told(world)
    assert message.endswith("left alone; what the job's pods were given stays as it was")


def test_an_ended_job_takes_nothing_of_others_with_it(world):
    title, body = FOREIGN[SERVICE]
    foreign = world.cluster.create(SERVICE, {"metadata": {"name": title, "namespace": "default"}, **body})
    submit(world, "lm", task("a", 1), svc=[])
    world.turn()
    world.end("lm-a-0")
    world.turn()
    assert find(world, SERVICE, title) == foreign
    assert names(world) == {"Service/lm"}


class Refusing:
    """The cluster, but writes of one kind are refused for as long as `error` is set."""

    def __init__(self, cluster, kind, error):
        self._cluster, self._kind, self.error, self.tries = cluster, kind, error, 0

    def __getattr__(self, verb):
        return getattr(self._cluster, verb)

    def create(self, kind, obj, **options):
        if kind == self._kind and self.error is not None:
            self.tries += 1
            raise self.error
        return self._cluster.create(kind, obj, **options)


def through(world, kind, error):
    refusing = Refusing(world.cluster, kind, error)
    world.restart(refusing)
    return refusing


def test_a_plugin_that_fails_says_why_and_is_tried_again_until_it_succeeds(world):
    refusing = through(world, SECRET, Forbidden("quota of secrets is used up"))
    submit(world, ssh=[])
    world.settle()
    assert told(world) == ["plugin ssh: quota of secrets is used up"]
    assert held.verdict(find(world, JOB, "lm"))["code"] == "plugin.failed"
    assert world.pods() == []
    refusing.error = None
    world.clock.advance(60)
    world.turn()
    assert len(world.pods()) == 3
    assert held.HELD not in resources(world)


def test_a_plugin_that_never_succeeds_ends_the_job(world):
    refusing = through(world, SECRET, Forbidden("no secrets here"))
    submit(world, ssh=[])
    for _ in range(40):
        world.settle()
        if find(world, JOB, "lm").get("status", {}).get("state", {}).get("phase") == "Terminated":
            break
        world.clock.advance(400)
    assert find(world, JOB, "lm")["status"]["state"]["phase"] == "Terminated"
    assert refusing.tries == 15


def test_a_cluster_that_does_not_answer_is_no_fault_of_the_plugin(world):
    refusing = through(world, SECRET, Unavailable("not now"))
    submit(world, ssh=[])
    for _ in range(20):
        world.settle()
        world.clock.advance(400)
    assert refusing.tries >= 20
    assert told(world) == []
    refusing.error = None
    world.turn()
    assert len(world.pods()) == 3


def test_the_objects_of_an_earlier_job_of_the_name_are_waited_for(world):
    """Where a garbage collector is slow, they are still there when the name is used again."""
    gone = {"apiVersion": JOB.api_version, "kind": "Job", "name": "lm", "uid": "before", "controller": True}
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "keeper", "uid": "", "controller": False}
    keeper = world.cluster.create(CONFIG_MAP, {"metadata": {"name": "keeper"}})
    other["uid"] = uid(keeper)
    meta = {"name": "lm-ssh", "namespace": "default", "ownerReferences": [gone, other]}
    world.cluster.create(SECRET, {"metadata": meta})
    submit(world, ssh=[])
    world.settle()
    assert told(world) == []
    assert world.pods() == []
    world.cluster.delete(SECRET, "lm-ssh", "default")
    world.clock.advance(10)
    world.turn()
    assert len(world.pods()) == 3


def test_a_claim_that_is_missing_is_said_on_the_job(world):
    world.cluster.create(JOB, job("lm", volumes=[{"mountPath": "/data", "volumeClaimName": "mine"}]))
    world.turn()
    why = held.verdict(find(world, JOB, "lm"))
    assert (why["code"], why["object"]) == ("claim.missing", "mine")


def test_a_large_job_lists_its_hosts_once_a_change(world, monkeypatch):
    """Not once a pod, nor once a pass."""
    svc._hosts.cache_clear()
    counted = []
    domains = svc.domains
    monkeypatch.setattr(svc, "domains", lambda *where: counted.append(where) or domains(*where))
    submit(world, "lm", task("worker", 1200), svc=[])
    world.turn()
    assert len(world.pods()) == 1200
    assert len(counted) == 1
    assert find(world, CONFIG_MAP, "lm-svc")["metadata"]["generation"] == 1


def test_a_large_cluster_of_tensorflow_is_put_together_once_a_pass(world, monkeypatch):
    counted = []
    whole = Tensorflow._cluster_of
    monkeypatch.setattr(Tensorflow, "_cluster_of", lambda *where: counted.append(where) or whole(*where))
    submit(world, "lm", task("worker", 1200), tensorflow=[])
    counted.clear()
    world.turn()
    assert len(world.pods()) == 1200
    assert len(counted) <= 3


def test_hosts_too_long_for_a_variable_are_told(world, monkeypatch):
    monkeypatch.setattr(limits, "STRING_LIMIT", 40)
    submit(world, "lm", task("worker", 3), svc=[])
    world.settle()
    [message] = told(world)
    assert message.startswith("plugin svc: VC_WORKER_HOSTS would have 44 bytes")
    assert "--inject-hosts-env=false" in message


class Dying:
    """The cluster for a controller that dies at its `last` write: before it is done, or after."""

    def __init__(self, cluster, last, *, after):
        self._cluster, self._left, self._after = cluster, last, after

    def __getattr__(self, verb):
        found = getattr(self._cluster, verb)
        if verb not in ("create", "replace", "patch", "patch_status", "delete", "create_many", "patch_many", "delete_many"):
            return found

        def write(*what, **how):
            self._left -= 1
            if self._left == 0 and self._after:
                found(*what, **how)
            if self._left <= 0:
                raise Unavailable("the controller is dead")
            return found(*what, **how)

        return write


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("last", range(1, 12))
def test_a_controller_that_dies_at_any_write_leaves_one_of_each_and_the_same_keys(last, after):
    world = World()
    submit(world, mpi=[])
    world.restart(Dying(world.cluster, last, after=after))
    world.settle()
    keys = files(world) if "Secret/lm-ssh" in names(world) else None
    world.restart()
    world.turn()
    assert names(world) == {"Service/lm", "ConfigMap/lm-svc", "NetworkPolicy/lm", "Secret/lm-ssh"}
    assert len(world.pods()) == 3
    assert keys in (None, files(world))
    assert {key for key in resources(world) if key.startswith("plugin-")} == {"plugin-svc", "plugin-ssh", "plugin-mpi"}
