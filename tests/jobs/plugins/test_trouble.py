"""Plugins in trouble: names that are taken, clusters that refuse, controllers that die, jobs that are large."""

import pytest

from cluster.errors import Forbidden, Unavailable
from cluster.kinds import CONFIG_MAP, JOB, NETWORK_POLICY, SECRET, SERVICE
from cluster.objects import uid
from jobs import held
from jobs.plugins import limits, svc
from jobs.plugins.tensorflow import Tensorflow
from tests.jobs.plugins.looking import files, find, names, resources, submit, told
from tests.jobs.world import World, job, task

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


def test_a_job_that_ends_half_prepared_leaves_nothing_behind(world):
    title, body = FOREIGN[SECRET]
    foreign = world.cluster.create(SECRET, {"metadata": {"name": title, "namespace": "default"}, **body})
    submit(world, mpi=[])
    world.turn()
    kinds = (SERVICE, CONFIG_MAP, NETWORK_POLICY)
    assert [len(world.cluster.list(kind).items) for kind in kinds] == [1, 1, 1]
    world.command("TerminateJob", "lm")
    world.turn()
    assert world.phase("lm") == "Terminated"
    assert [world.cluster.list(kind).items for kind in kinds] == [[], [], []]
    assert find(world, SECRET, title) == foreign


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
