"""What is refused of plugins at submission, and where the fault is."""

import pytest

from cluster.errors import Invalid
from cluster.kinds import JOB
from tests.jobs.world import World, job, task


@pytest.fixture
def world():
    return World()


def faults(world, manifest):
    with pytest.raises(Invalid) as refused:
        world.cluster.create(JOB, manifest)
    return [(fault.pointer, fault.code) for fault in refused.value.fields]


ROLES = (task("master", 1), task("worker", 2), task("head", 1))


@pytest.mark.parametrize(
    ("plugins", "where"),
    [
        ({"scv": []}, [("/spec/plugins/scv", "unknown")]),
        ({"a/b": []}, [("/spec/plugins/a~1b", "unknown")]),
        ({"env": ["--index=1"]}, [("/spec/plugins/env/0", "unknown")]),
        ({"svc": ["--inject-hosts-env", "--publish=true"]}, [("/spec/plugins/svc/1", "unknown")]),
        ({"svc": ["--inject-hosts-env=maybe"]}, [("/spec/plugins/svc/0", "format")]),
        ({"svc": ["inject-hosts-env=true"]}, [("/spec/plugins/svc/0", "format")]),
        ({"svc": "--inject-hosts-env"}, [("/spec/plugins/svc", "type")]),
        ({"svc": [True]}, [("/spec/plugins/svc/0", "type")]),
        ({"ssh": ["--ssh-port=no", "--ssh-key=x"]}, [("/spec/plugins/ssh/0", "type"), ("/spec/plugins/ssh/1", "unknown")]),
        ({"mpi": ["--port=0"]}, [("/spec/plugins/mpi/0", "range")]),
        ({"mpi": ["--port=65536"]}, [("/spec/plugins/mpi/0", "range")]),
        ({"mpi": ["--master=nobody"]}, [("/spec/plugins/mpi", "not_found")]),
        ({"mpi": ["-master", "nobody"]}, [("/spec/plugins/mpi", "not_found")]),
        ({"ray": ["--head=nobody"]}, [("/spec/plugins/ray", "not_found")]),
        ({"ray": ["--port=8265"]}, [("/spec/plugins/ray", "duplicate")]),
        ({"tensorflow": ["--ps"]}, [("/spec/plugins/tensorflow/0", "required")]),
        ({"pytorch": ["--wait-master-timeout=soon"]}, [("/spec/plugins/pytorch/0", "type")]),
        ({"hcclrank": ["--port=1"]}, [("/spec/plugins/hcclrank/0", "unknown")]),
    ],
)
def test_a_plugin_is_refused_where_it_is_wrong(world, plugins, where):
    assert faults(world, job("train", *ROLES, plugins=plugins)) == where


@pytest.mark.parametrize(
    ("title", "plugins"),
    [("3d", {"svc": []}), ("a.b", {"svc": []}), ("3d", {"tensorflow": []}), ("r" * 55, {"ray": ["--head=w"]})],
)
def test_a_name_that_no_service_can_have_is_refused_with_those_that_make_one(world, title, plugins):
    assert faults(world, job(title, task("w", 2), plugins=plugins)) == [("/metadata/name", "format")]
    assert world.cluster.create(JOB, job(title, task("w", 2), plugins={"env": []}))


@pytest.mark.parametrize(
    ("given", "plugins", "where"),
    [
        ({"volumeMounts": [{"name": "mine", "mountPath": "/etc/volcano"}]}, {"svc": []}, "/volumeMounts"),
        ({"volumeMounts": [{"name": "mine", "mountPath": "/root/.ssh"}]}, {"ssh": []}, "/volumeMounts"),
        ({"ports": [{"name": "pytorchjob-port", "containerPort": 1}]}, {"pytorch": ["--master=w"]}, "/ports"),
    ],
)
def test_what_a_plugin_adds_must_not_meet_what_is_there(world, given, plugins, where):
    role = task("w", 1)
    role["template"]["spec"]["containers"][0] |= given
    role["template"]["spec"]["volumes"] = [{"name": "mine", "emptyDir": {}}]
    assert faults(world, job("train", role, plugins=plugins)) == [
        (f"/spec/tasks/0/template/spec/containers/0{where}", "duplicate")
    ]
    assert world.cluster.create(JOB, job("train", role))


def test_a_name_that_no_volume_can_have_is_refused_with_what_is_mounted(world):
    for more in ({"plugins": {"ssh": []}}, {"volumes": [{"mountPath": "/data", "volumeClaimName": "c"}]}):
        assert faults(world, job("a.b", task("w", 1), **more)) == [("/spec/tasks/0/template/spec", "format")]


def test_a_jobs_volume_must_not_be_mounted_where_the_template_mounts_one(world):
    role = task("w", 1)
    role["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "mine", "mountPath": "/data"}]
    role["template"]["spec"]["volumes"] = [{"name": "mine", "emptyDir": {}}]
    manifest = job("train", role, volumes=[{"mountPath": "/data", "volumeClaimName": "c"}])
    assert faults(world, manifest) == [("/spec/tasks/0/template/spec/containers/0/volumeMounts", "duplicate")]


@pytest.mark.parametrize("plugins", [{"tensorflow": []}, {"mpi": []}])
def test_a_variable_with_which_no_program_starts_is_refused(world, plugins):
    """Linux takes 131,072 bytes, the end mark among them; below that it is let in."""
    [plugin] = plugins
    small, large = (job("train", task("master", 1), task("worker", count), plugins=plugins) for count in (3_000, 8_000))
    assert world.cluster.create(JOB, small, dry_run=True)
    assert faults(world, large) == [(f"/spec/plugins/{plugin}", "range")]


def test_svc_takes_ten_thousand_pods_and_refuses_what_no_config_map_holds(world):
    assert world.cluster.create(JOB, job("train", task("worker", 10_000), plugins={"svc": []}), dry_run=True)
    long = "a-long-name-of-a-role-that-says-all"
    assert faults(world, job("train", task(long, 12_000), plugins={"svc": []})) == [("/spec/plugins/svc", "range")]


def test_an_impossible_number_of_pods_is_refused_without_listing_them(world):
    found = faults(world, job("train", task("worker", 2_000_000_000), plugins={"svc": [], "tensorflow": [], "mpi": []}))
    assert ("/spec/plugins/svc", "range") in found


def test_no_refusal_repeats_a_key(world):
    manifest = job("train", plugins={"ssh": ["--ssh-private-kay=hunter2", "hunter2", "--ssh-port=hunter2"]})
    with pytest.raises(Invalid) as refused:
        world.cluster.create(JOB, manifest)
    assert "hunter2" not in str(refused.value)
    assert len(refused.value.fields) == 3


@pytest.mark.parametrize(
    ("plugins", "completed"),
    [
        ({"mpi": None}, {"mpi": [], "ssh": [], "svc": []}),
        ({"tensorflow": []}, {"tensorflow": [], "svc": []}),
        ({"pytorch": []}, {"pytorch": [], "svc": []}),
        ({"ray": []}, {"ray": [], "svc": []}),
        ({"hcclrank": []}, {"hcclrank": []}),
        ({"mpi": [], "ssh": ["--ssh-port=2"], "svc": ["--inject-hosts-env=0"]}, None),
    ],
)
def test_plugins_bring_those_that_they_need(world, plugins, completed):
    made = world.cluster.create(JOB, job("train", *ROLES, plugins=plugins))
    assert made["spec"]["plugins"] == (completed or plugins)
