"""What each plugin makes of a pod: the exact names, variables, files, mounts, ports and commands."""

import json

import pytest

from jobs.plugins import REGISTRY, plugins_of
from jobs.pods import build_pod
from tests.jobs.world import job as manifest
from tests.jobs.world import task

INIT = {"initContainers": [{"name": "first", "image": "busybox"}]}


def role(name, replicas, **spec):
    """A role with containers `main` and `side`."""
    made = task(name, replicas)
    containers = [{"name": "main", "image": "busybox"}, {"name": "side", "image": "busybox"}]
    made["template"]["spec"] = {"containers": containers, "restartPolicy": "Never"} | spec
    return made


def job(*tasks, name="lm", **plugins):
    made = manifest(name, *tasks, queue="default", plugins=plugins)
    made["metadata"] |= {"uid": "u1", "namespace": "default"}
    return made


def pod(made, name, index=0):
    """The pod of a role as it would be created."""
    found = next(each for each in made["spec"]["tasks"] if each["name"] == name)
    built = build_pod(made, found, index)
    for plugin in plugins_of(made):
        plugin.on_pod_create(built, made)
    return built


def env(container):
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container.get("env", ())}


def everywhere(built):
    return [*built["spec"].get("initContainers", ()), *built["spec"]["containers"]]


def test_the_order_of_plugins_is_ours_whatever_the_manifest_says():
    made = job(role("master", 1), **dict.fromkeys(reversed(REGISTRY), ()))
    assert [plugin.name for plugin in plugins_of(made)] == [
        "env", "svc", "ssh", "mpi", "tensorflow", "pytorch", "ray", "hcclrank",
    ]  # fmt: skip


class TestEnv:
    def test_every_container_learns_its_index(self):
        built = pod(job(role("a-b", 3, **INIT), env=[]), "a-b", 2)
        assert [env(each) for each in everywhere(built)] == [{"VK_TASK_INDEX": "2", "VC_TASK_INDEX": "2"}] * 3

    def test_variables_that_are_there_stay(self):
        made = job(role("a", 1), env=[])
        made["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"] = [{"name": "VC_TASK_INDEX", "value": "mine"}]
        variables = pod(made, "a")["spec"]["containers"][0]["env"]
        assert [(each["name"], each["value"]) for each in variables] == [
            ("VC_TASK_INDEX", "mine"), ("VK_TASK_INDEX", "0"), ("VC_TASK_INDEX", "0"),
        ]  # fmt: skip


class TestSvc:
    def test_hosts_as_references_and_files_everywhere(self):
        built = pod(job(role("ps", 1), role("big-worker", 2, **INIT), svc=[]), "big-worker", 1)
        names = ("VC_PS_HOSTS", "VC_PS_NUM", "VC_BIG_WORKER_HOSTS", "VC_BIG_WORKER_NUM")
        for container in everywhere(built):
            assert env(container) == {name: {"configMapKeyRef": {"name": "lm-svc", "key": name}} for name in names}
            assert container["volumeMounts"] == [{"name": "lm-svc", "mountPath": "/etc/volcano"}]
        assert built["spec"]["volumes"] == [{"name": "lm-svc", "configMap": {"name": "lm-svc"}}]
        assert (built["spec"]["hostname"], built["spec"]["subdomain"]) == ("lm-big-worker-1", "lm")

    def test_names_of_the_template_stay(self):
        spec = pod(job(role("a", 1, hostname="h", subdomain="s"), svc=[]), "a")["spec"]
        assert (spec["hostname"], spec["subdomain"]) == ("h", "s")

    def test_without_variables_the_files_stay(self):
        built = pod(job(role("a", 1, **INIT), svc=["--inject-hosts-env=false"]), "a")
        assert [env(each) for each in everywhere(built)] == [{}, {}, {}]
        assert [each["volumeMounts"][0]["mountPath"] for each in everywhere(built)] == ["/etc/volcano"] * 3


class TestSsh:
    @pytest.mark.parametrize(
        ("arguments", "path", "mode"),
        [
            ([], "/root/.ssh", 0o600),
            (["--ssh-key-file-path=/root/.ssh"], "/root/.ssh", 0o600),
            (["--ssh-key-file-path=/home/user/.ssh"], "/home/user/.ssh", 0o644),
        ],
    )
    def test_the_keys_are_mounted_as_a_directory(self, arguments, path, mode):
        built = pod(job(role("a", 1, **INIT), ssh=arguments), "a")
        files = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
        items = [{"key": file, "path": f".ssh/{file}"} for file in files]
        assert built["spec"]["volumes"] == [
            {"name": "lm-ssh", "secret": {"secretName": "lm-ssh", "items": items, "defaultMode": mode}}
        ]
        for container in everywhere(built):
            assert container["volumeMounts"] == [{"name": "lm-ssh", "mountPath": path, "subPath": ".ssh"}]


class TestMpi:
    made = job(role("master", 1, **INIT), role("worker", 2, **INIT), role("other", 1), mpi=[])
    hosts = "lm-worker-0.lm,lm-worker-1.lm"

    def test_the_master_knows_its_workers(self):
        assert [env(each) for each in everywhere(pod(self.made, "master"))] == [{"MPI_HOST": self.hosts}] * 3

    @pytest.mark.parametrize("name", ["master", "worker", "other"])
    def test_every_container_of_every_role_opens_the_port(self, name):
        ports = [each["ports"] for each in everywhere(pod(self.made, name))]
        assert ports == [[{"name": "mpijob-port", "containerPort": 22}]] * len(ports)

    def test_workers_and_others_know_nobody(self):
        for name in ("worker", "other"):
            assert not any("MPI_HOST" in env(each) for each in everywhere(pod(self.made, name)))

    def test_roles_and_port_can_be_named(self):
        made = job(role("m", 1), role("w", 1), mpi=["--master=m", "-worker", "w", "--port=5000"])
        container = pod(made, "m")["spec"]["containers"][0]
        assert env(container) == {"MPI_HOST": "lm-w-0.lm"}
        assert container["ports"] == [{"name": "mpijob-port", "containerPort": 5000}]

    def test_a_port_that_is_declared_is_not_declared_again(self):
        made = job(role("master", 1), role("worker", 1), mpi=[])
        declared = [{"name": "mine", "containerPort": 22, "protocol": "UDP"}]
        made["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["ports"] = declared
        assert [each["ports"] for each in pod(made, "master")["spec"]["containers"]] == [
            declared, [{"name": "mpijob-port", "containerPort": 22}],
        ]  # fmt: skip

    def test_without_a_worker_role_the_master_is_left_as_it_is(self):
        made = job(role("master", 1), role("other", 1), mpi=[])
        assert pod(made, "master") == build_pod(made, made["spec"]["tasks"][0], 0)
        assert pod(made, "other")["spec"]["containers"][0]["ports"]

    def test_no_workers_are_an_empty_list(self):
        assert env(pod(job(role("master", 1), role("worker", 0), mpi=[]), "master")["spec"]["containers"][0]) == {"MPI_HOST": ""}

    def test_a_hostname_in_the_template_stands_there_once(self):
        made = job(role("master", 1), role("worker", 3, hostname="h", subdomain="s"), mpi=[])
        assert env(pod(made, "master")["spec"]["containers"][0]) == {"MPI_HOST": "h.s"}


class TestTensorflow:
    def config(self, made, name, index=0):
        built = pod(made, name, index)
        found = [env(each).get("TF_CONFIG") for each in built["spec"]["containers"]]
        assert found[0] == found[1]
        assert all("TF_CONFIG" not in env(each) for each in built["spec"].get("initContainers", ()))
        return found[0]

    def test_the_cluster_and_ones_place_in_it(self):
        made = job(role("worker", 2, **INIT), role("ps", 1), tensorflow=[])
        assert self.config(made, "worker", 1) == (
            '{"cluster":{"ps":["lm-ps-0.lm:2222"],"worker":["lm-worker-0.lm:2222","lm-worker-1.lm:2222"]},'
            '"task":{"type":"worker","index":1}}'
        )

    def test_all_kinds_by_other_names_and_port(self):
        arguments = ["--ps=p", "--worker=w", "--chief=c", "--evaluator=e", "--port=1"]
        made = job(role("p", 1), role("w", 1), role("c", 1), role("e", 1), role("x", 1), tensorflow=arguments)
        cluster = {"ps": ["lm-p-0.lm:1"], "worker": ["lm-w-0.lm:1"], "chief": ["lm-c-0.lm:1"], "evaluator": ["lm-e-0.lm:1"]}
        for name, kind in (("p", "ps"), ("w", "worker"), ("c", "chief"), ("e", "evaluator"), ("x", "x")):
            assert json.loads(self.config(made, name)) == {"cluster": cluster, "task": {"type": kind, "index": 0}}

    def test_a_role_without_pods_is_left_out(self):
        assert json.loads(self.config(job(role("ps", 0), role("worker", 1), tensorflow=[]), "worker"))["cluster"] == {
            "worker": ["lm-worker-0.lm:2222"]
        }

    def test_a_hostname_in_the_template_is_repeated_for_each_pod(self):
        made = job(role("worker", 2, hostname="h"), tensorflow=[])
        assert json.loads(self.config(made, "worker", 1))["cluster"]["worker"] == ["h.lm:2222", "h.lm:2222"]

    def test_a_single_pod_is_no_cluster(self):
        assert self.config(job(role("worker", 1), tensorflow=[]), "worker") is None
        assert self.config(job(role("worker", 2), tensorflow=[]), "worker") is not None


class TestPytorch:
    made = job(role("master", 1, **INIT), role("worker", 2, **INIT), role("other", 5), pytorch=[])

    @pytest.mark.parametrize(
        ("name", "index", "rank"),
        [("master", 0, {"RANK": "0"}), ("worker", 0, {"RANK": "1"}), ("worker", 1, {"RANK": "2"}), ("other", 3, {})],
    )
    def test_where_the_master_is_how_many_there_are_and_which_one_this_is(self, name, index, rank):
        built = pod(self.made, name, index)
        shared = {"MASTER_ADDR": "lm-master-0.lm", "MASTER_PORT": "23456", "WORLD_SIZE": "3"}
        for container in built["spec"]["containers"]:
            assert env(container) == shared | rank
            assert container["ports"] == [{"name": "pytorchjob-port", "containerPort": 23456}]
        assert [each["name"] for each in built["spec"].get("initContainers", ())] == ([] if name == "other" else ["first"])
        assert not any("env" in each or "ports" in each for each in built["spec"].get("initContainers", ()))

    def test_every_master_has_rank_0(self):
        made = job(role("master", 2), role("worker", 1), pytorch=[])
        assert env(pod(made, "master", 1)["spec"]["containers"][0])["RANK"] == "0"
        assert env(pod(made, "worker")["spec"]["containers"][0])["WORLD_SIZE"] == "3"

    def test_without_a_master_nothing_is_done(self):
        made = job(role("worker", 2), pytorch=["--wait-master-enabled"])
        assert pod(made, "worker") == build_pod(made, made["spec"]["tasks"][0], 0)

    def test_roles_port_and_the_masters_own_hostname(self):
        arguments = ["--master=m", "--worker=w", "--port=1"]
        container = pod(job(role("m", 1, hostname="h", subdomain="s"), role("w", 1), pytorch=arguments), "w")["spec"][
            "containers"
        ][0]
        assert env(container) == {"MASTER_ADDR": "h.s", "MASTER_PORT": "1", "WORLD_SIZE": "2", "RANK": "1"}

    def test_workers_wait_for_the_master_when_they_are_told_to(self):
        arguments = ["--wait-master-enabled=true", "--wait-master-timeout=600", "--wait-master-image=alpine"]
        made = job(role("master", 1), role("worker", 1, **INIT), pytorch=arguments)
        waiter = pod(made, "worker")["spec"]["initContainers"][-1]
        assert (waiter["name"], waiter["image"], waiter["command"][:2]) == ("wait-for-master", "alpine", ["sh", "-c"])
        assert "lm-master-0.lm 23456" in waiter["command"][2]
        assert "600" in waiter["command"][2]
        assert "initContainers" not in pod(made, "master")["spec"]

    def test_a_waiter_of_ones_own_is_kept(self):
        own = {"name": "wait-for-master", "image": "mine"}
        made = job(role("master", 1), role("worker", 1, initContainers=[own]), pytorch=["--wait-master-enabled"])
        assert pod(made, "worker")["spec"]["initContainers"] == [own]


class TestRay:
    def made(self, *arguments):
        head, worker = task("head", 1), task("worker", 2)
        for each, name in ((head, "head"), (worker, "worker")):
            each["template"]["spec"]["containers"] = [
                {"name": name, "image": "ray", "command": ["old"], "args": ["kept"]}, {"name": "side", "image": "b"},
            ]  # fmt: skip
        return job(head, worker, name="rc", ray=list(arguments))

    def test_the_head_is_started_and_opens_its_ports(self):
        container, side = pod(self.made(), "head")["spec"]["containers"]
        assert container["command"] == [
            "sh", "-c",
            "ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=8265 --ray-client-server-port=10001",
        ]  # fmt: skip
        assert container["args"] == ["kept"]
        assert container["ports"] == [
            {"name": "gcs", "containerPort": 6379},
            {"name": "dashboard", "containerPort": 8265},
            {"name": "client-server", "containerPort": 10001},
        ]
        assert "command" not in side

    def test_workers_join_the_head(self):
        container = pod(self.made("--port=1"), "worker", 1)["spec"]["containers"][0]
        assert container["command"] == ["sh", "-c", "ray start --block --address=rc-head-0.rc:1"]
        assert "ports" not in container

    def test_only_the_named_container_of_the_named_role(self):
        made = self.made("--headContainer=side", "--workerContainer=none")
        first, second = (each["command"][0] for each in pod(made, "head")["spec"]["containers"])
        assert (first, second) == ("old", "sh")
        assert [each.get("command") for each in pod(made, "worker")["spec"]["containers"]] == [["old"], None]


class TestHcclRank:
    def rank(self, made, name, index=0):
        return pod(made, name, index)["metadata"]["annotations"].get("hccl/rankIndex")

    def test_masters_first_then_workers(self):
        made = job(role("master", 2), role("worker", 2), role("other", 1), hcclrank=[])
        assert [self.rank(made, "master", 1), self.rank(made, "worker", 0), self.rank(made, "worker", 1)] == ["1", "2", "3"]
        assert self.rank(made, "other") is None

    def test_workers_alone_begin_at_0(self):
        assert self.rank(job(role("w", 2), hcclrank=["--worker=w"]), "w", 1) == "1"

    def test_the_rank_that_pytorch_gives_counts(self):
        made = job(role("master", 2), role("worker", 2), hcclrank=[], pytorch=[])
        assert [self.rank(made, "master", 1), self.rank(made, "worker", 1)] == ["0", "2"]

    def test_an_annotation_of_ones_own_stays_and_an_empty_rank_counts_for_nothing(self):
        made = job(role("master", 1), hcclrank=[])
        made["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"] = [{"name": "RANK", "value": ""}]
        assert self.rank(made, "master") == "0"
        made["spec"]["tasks"][0]["template"]["metadata"] = {"annotations": {"hccl/rankIndex": "7"}}
        assert self.rank(made, "master") == "7"

    def test_any_roles_own_rank_counts(self):
        made = job(role("other", 1), hcclrank=[])
        made["spec"]["tasks"][0]["template"]["spec"]["containers"][1]["env"] = [{"name": "RANK", "value": "9"}]
        assert self.rank(made, "other") == "9"


class TestVolcanosOwnTables:
    """Facts of Volcano's unit tests that are not among the above."""

    @pytest.mark.parametrize("name", ["ps", "worker", "chief"])
    def test_tensorflow(self, name):
        made = job(role("ps", 2), role("worker", 2), role("chief", 1), name="train-123", tensorflow=["--port=5000"])
        assert env(pod(made, name)["spec"]["containers"][0])["TF_CONFIG"] == (
            '{"cluster":{"ps":["train-123-ps-0.train-123:5000","train-123-ps-1.train-123:5000"],'
            '"worker":["train-123-worker-0.train-123:5000","train-123-worker-1.train-123:5000"],'
            '"chief":["train-123-chief-0.train-123:5000"]},"task":{"type":"' + name + '","index":0}}'
        )

    def test_hcclrank_with_masters_of_another_name_and_with_none(self):
        made = job(role("m", 1), role("w", 4), hcclrank=["--master=m", "--worker=w"])
        none = job(role("master", 0), role("worker", 4), hcclrank=[])
        found = [pod(made, "m"), pod(made, "w", 2), pod(none, "worker", 1)]
        assert [each["metadata"]["annotations"]["hccl/rankIndex"] for each in found] == ["0", "3", "1"]

    def test_ray_with_a_head_of_another_name(self):
        head = task("test-head", 1)
        head["template"]["spec"]["containers"][0]["name"] = "head"
        made = job(head, name="ray-cluster-test", ray=["--head=test-head"])
        assert pod(made, "test-head")["spec"]["containers"][0]["command"][2].startswith("ray start --head ")


def test_the_manifest_itself_is_never_changed():
    made = job(role("master", 1, **INIT), role("worker", 1, **INIT), **dict.fromkeys(("env", "svc", "ssh", "mpi", "pytorch"), ()))
    before = json.dumps(made)
    pod(made, "worker")
    assert json.dumps(made) == before
