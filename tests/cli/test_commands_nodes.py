"""`node` against a running Basalt."""

import json

import pytest

from tests.cli.jobs import phase, submitted
from tests.cli.program import basalt
from tests.e2e.server import wait_for

pytestmark = pytest.mark.usefixtures("signed_in")


def status(name: str) -> str:
    line = next(line for line in basalt("node", "list").lines if line.startswith(f"{name} "))
    return line.split()[1]


def test_a_node_is_cordoned_and_takes_pods_again():
    assert basalt("node", "list").lines[0].split() == ["Name", "Status", "GPUs", "Model", "Pods", "Rack"]
    assert basalt("node", "cordon", "v100-01").out == "node/v100-01 cordoned\n"
    wait_for(lambda: status("v100-01") == "Ready,SchedulingDisabled")
    assert basalt("node", "uncordon", "v100-01").out == "node/v100-01 uncordoned\n"
    wait_for(lambda: status("v100-01") == "Ready")
    assert "nonesuch" in basalt("node", "cordon", "v100-01", "nonesuch", code=10).err
    basalt("node", "uncordon", "v100-01")


def test_a_node_is_drained_after_a_look_at_what_that_would_do():
    assert basalt("node", "drain", "v100-02", "--dry-run").lines[-1] == "Nothing was done."
    told = json.loads(basalt("node", "drain", "v100-02", "--dry-run", "-o", "json").out)
    assert (told["nodes"], told["missing_rights"]) == (["v100-02"], [])
    assert status("v100-02") == "Ready"
    assert "--reason" in basalt("node", "drain", "v100-02", code=2).err
    assert basalt("node", "drain", "v100-02", "-m", "a fan").lines[-1] == "node/v100-02 drained"
    assert status("v100-02") == "Ready,SchedulingDisabled"
    basalt("node", "uncordon", "v100-02")


def test_a_drain_that_waits_gives_up_at_its_deadline():
    submitted("stays", replicas=1, duration="100h")
    phase("stays", "Running")
    pods = json.loads(basalt("pod", "list", "-j", "stays", "-o", "json").out)["items"]
    node = pods[0]["spec"]["nodeName"]
    said = basalt("node", "drain", node, "-m", "a fan", "--wait", "--deadline", "1m", code=9)
    assert "0 of 1 nodes are drained" in said.err
    assert "--then-evict" in basalt("node", "drain", node, "-m", "a fan", "--then-evict", code=2).err
    phase("stays", "Running")
    basalt("node", "uncordon", node)
    basalt("job", "delete", "-N", "stays")
