"""What `manage.py run` refuses before it begins anything."""

import os

import pytest
from django.core.management import CommandError, call_command

from cluster.embedded import fleets
from cluster.embedded.processes import machine
from cluster.embedded.store import EmbeddedCluster
from portal import processes


@pytest.mark.parametrize("speed", ["0", "-1", "fast", "nan", "20000"])
def test_a_speed_out_of_range_is_refused_in_words(speed):
    with pytest.raises(CommandError, match=f"a speed is a number above 0 and at most 10000, not {speed}"):
        call_command("run", f"--speed={speed}")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--host=0.0.0.0"], "a loopback address only, not 0.0.0.0"),
        (["--host=::"], "a loopback address only, not ::"),
        (["--host=example.org"], "a loopback address only, not example.org"),
        (["--speed=2"], "leave --speed and --instant away"),
        (["--instant"], "leave --speed and --instant away"),
        (["--workload=sample"], "Leave --workload away"),
        (["--fleet=demo"], "Leave --fleet away"),
    ],
)
def test_what_does_not_go_with_real_programs_is_refused(options, why):
    with pytest.raises(CommandError, match=why):
        call_command("run", "--runtime=process", *options)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.8.7", "::1", "localhost"])
def test_every_loopback_address_will_do(host):
    assert processes.is_loopback(host)


def test_this_machine_is_a_node_with_what_it_has(tmp_path):
    node = machine.fleet(tmp_path).nodes[0]
    assert node["metadata"]["annotations"][machine.RUNTIME] == "process"
    assert int(node["status"]["allocatable"]["cpu"]) == os.cpu_count()


def test_machines_of_one_runtime_do_not_become_the_others(tmp_path):
    cluster = EmbeddedCluster()
    fleets.load(cluster, machine.fleet(tmp_path))
    assert machine.others(cluster, "process") == []
    assert machine.others(cluster, "simulated") == [machine.fleet(tmp_path).nodes[0]["metadata"]["name"]]
    fleets.load(cluster, fleets.demo())
    assert len(machine.others(cluster, "process")) == 32
