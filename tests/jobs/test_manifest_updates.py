"""What may change of a Job that is there."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from jobs.manifest import default, validate
from tests.jobs.manifests import Queues
from tests.jobs.world import job, task


def updated(**changes: Any) -> dict[str, str]:
    old = job("train", task(replicas=3), task("second", 1))
    default(old)
    new = copy.deepcopy(old)
    for path, value in changes.items():
        here: Any = new["spec"]
        *parents, last = path.split("__")
        for part in parents:
            here = here[int(part)] if part.isdigit() else here[part]
        here[last] = value
    return {fault.pointer: fault.message for fault in validate(new, Queues(), old)}


@pytest.mark.parametrize(
    "changes",
    [
        {"minAvailable": 1},
        {"priorityClassName": "high"},
        {"tasks__0__replicas": 5},
        {"tasks__0__minAvailable": 1},
    ],
)
def test_what_may_change_later(changes):
    assert updated(**changes) == {}


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"queue": "other"}, "/spec/queue"),
        ({"maxRetry": 9}, "/spec/maxRetry"),
        ({"plugins": {"env": []}}, "/spec/plugins"),
        ({"tasks__0__name": "other"}, "/spec/tasks/0/name"),
        ({"tasks__0__template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}, "/spec/tasks/0/template"),
        ({"tasks": [task()]}, "/spec/tasks"),
        ({"minAvailable": 5}, "/spec/minAvailable"),
        ({"tasks__0__minAvailable": 4}, "/spec/tasks/0/minAvailable"),
        ({"tasks__0__replicas": -1}, "/spec/tasks/0/replicas"),
    ],
)
def test_what_may_not_change_later(changes, where):
    assert where in updated(**changes)


def test_the_name_of_a_claim_that_the_controller_made_is_no_change():
    old = job(volumes=[{"mountPath": "/a", "volumeClaim": {}, "volumeClaimName": "train-pvc-abc"}])
    new = job(volumes=[{"mountPath": "/a", "volumeClaim": {}}])
    assert validate(new, Queues(), old) == []
