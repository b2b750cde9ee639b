"""The objects that plugins make: exactly these, before the first pod, the job's own, and nobody else's."""

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_public_key

from cluster.kinds import CONFIG_MAP, JOB, NETWORK_POLICY, POD, SECRET, SERVICE
from cluster.objects import name, uid
from tests.jobs.plugins.looking import ALL, ask, files, find, names, resources, submit
from tests.jobs.world import task


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
