"""The Job manifest in large: more than can be counted or kept, and faults by the thousand."""

from __future__ import annotations

import copy
import time
from typing import Any

import pytest

from jobs.manifest import default, validate
from tests.jobs.manifests import BOX, Queues, faults
from tests.jobs.world import job, task


def test_a_manifest_full_of_faults_is_judged_quickly():
    env = [{"name": f"={n}", "value": n} for n in range(5_000)]
    tasks = [task(f"task-{n}", 1, dependsOn={"name": ["ghost", "task-0", "task-0"]}) for n in range(1_000)]
    tasks[0]["template"]["spec"]["containers"][0]["env"] = env
    begin = time.process_time()
    first = faults(job("train", *tasks))
    tasks[0]["template"]["spec"]["containers"][0]["env"] = []
    second = faults(job("train", *tasks))
    assert time.process_time() - begin < 10
    assert (len(first), len(second)) == (12_001, 2_001)
    assert max(len(message) for message in second.values()) < 500


HUGE = [
    ({"requests": {"cpu": "1e400"}}, 1, f"{BOX}/resources/requests/cpu", "more cpu than can be counted"),
    ({"requests": {"memory": "9Ei"}}, 1, f"{BOX}/resources/requests/memory", "more memory than can be counted"),
    ({"requests": {"memory": "7Ei"}}, 2, "/spec/tasks/0/replicas", "2 pods of this task are more memory than can be counted"),
    ({"limits": {"nvidia.com/gpu": 10**8 + 1}}, 1, "/spec/tasks/0/replicas", "more nvidia.com/gpu than can be counted"),
    ({}, 100_001, "/spec/tasks/0/replicas", "at most 100000 pods a job"),
    ({}, 2**31 - 1, "/spec/tasks/0/replicas", "at most 100000 pods a job"),
]


@pytest.mark.parametrize(("resources", "replicas", "where", "said"), HUGE)
def test_what_cannot_be_counted_or_kept_is_refused(resources: dict[str, Any], replicas: int, where: str, said: str):
    manifest = job("huge", task("w", replicas))
    manifest["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = resources
    assert said in faults(manifest)[where]


def test_containers_together_ask_no_more_than_can_be_counted():
    manifest = job("huge", task("w", 1))
    pod = manifest["spec"]["tasks"][0]["template"]["spec"]
    pod["containers"] = [{"name": name, "image": "busybox", "resources": {"requests": {"memory": "5Ei"}}} for name in ("a", "b")]
    told = faults(manifest)["/spec/tasks/0/template/spec/containers"]
    assert told == "ask together more memory than can be counted: ask for less"


def test_a_job_cannot_grow_beyond_what_can_be_kept():
    old = job("grown", task("w", 1))
    default(old)
    new = copy.deepcopy(old)
    new["spec"]["tasks"][0]["replicas"] = 100_001
    assert [fault.pointer for fault in validate(new, Queues(), old)] == ["/spec/tasks/0/replicas"]
