"""A pod in one line, by kubectl's rules."""

from typing import Any

import pytest

from cluster.pod_state import PodState


def pod(status: dict[str, Any], inits: tuple[dict[str, Any], ...] = (), **meta: Any) -> dict[str, Any]:
    return {"metadata": meta, "spec": {"containers": [{"name": "main"}], "initContainers": list(inits)}, "status": status}


def state(name: str = "main", ready: bool = False, restarts: int = 0, last: str = "", **said: Any) -> dict[str, Any]:
    ended = {"lastState": {"terminated": {"finishedAt": last}}} if last else {}
    return {"name": name, "ready": ready, "restartCount": restarts, "state": said} | ended


ENDED = state(terminated={"reason": "Completed", "exitCode": 0})
SIDECAR = {"name": "proxy", "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("found", "word", "ready"),
    [
        (pod({}), "Pending", "0/1"),
        (pod({"phase": "Running", "containerStatuses": [state(ready=True, running={})]}), "Running", "1/1"),
        (pod({"phase": "Succeeded", "containerStatuses": [ENDED]}), "Completed", "0/1"),
        (pod({"phase": "Failed", "containerStatuses": [state(terminated={"exitCode": 137, "signal": 9})]}), "Signal:9", "0/1"),
        (pod({"phase": "Failed", "containerStatuses": [state(terminated={"exitCode": 3})]}), "ExitCode:3", "0/1"),
        (pod({"phase": "Running"}, deletionTimestamp="2026-01-01T00:00:00Z"), "Terminating", "0/1"),
        (pod({"phase": "Succeeded"}, deletionTimestamp="2026-01-01T00:00:00Z"), "Succeeded", "0/1"),
        (pod({"phase": "Running", "reason": "NodeLost"}, deletionTimestamp="2026-01-01T00:00:00Z"), "Unknown", "0/1"),
        (pod({"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}), "SchedulingGated", "0/1"),
        (pod({"initContainerStatuses": [state("a", running={})]}, ({"name": "a"}, {"name": "b"})), "Init:0/2", "0/1"),
        (
            pod(
                {
                    "phase": "Running",
                    "initContainerStatuses": [state("proxy", ready=True, running={}) | {"started": True}],
                    "containerStatuses": [state(terminated={"reason": "Completed", "exitCode": 0})],
                },
                (SIDECAR,),
            ),
            "Completed",
            "1/2",
        ),
        (
            pod(
                {
                    "phase": "Running",
                    "containerStatuses": [state(terminated={"reason": "Completed"}), state("b", ready=True, running={})],
                    "conditions": [{"type": "Ready", "status": "True"}],
                }
            ),
            "Running",
            "1/1",
        ),
    ],
)  # fmt: skip
def test_the_word_and_how_many_containers_are_ready(found: dict[str, Any], word: str, ready: str):
    shown = PodState.of(found)
    assert (shown.word, f"{shown.ready}/{shown.containers}") == (word, ready)


def test_restarts_count_sidecars_too_and_name_the_last():
    statuses = {
        "initContainerStatuses": [state("proxy", restarts=2, last="2026-01-02T00:00:00Z", running={}) | {"started": True}],
        "containerStatuses": [state(restarts=3, last="2026-01-01T00:00:00Z", running={})],
    }
    shown = PodState.of(pod({"phase": "Running", **statuses}, (SIDECAR,)))
    assert (shown.restarts, shown.restarted_at) == (5, "2026-01-02T00:00:00Z")


def test_restarts_of_init_containers_that_are_through_do_not_count():
    statuses = {
        "initContainerStatuses": [state("a", restarts=4, terminated={"exitCode": 0})],
        "containerStatuses": [state(running={}, ready=True)],
    }
    assert PodState.of(pod({"phase": "Running", **statuses}, ({"name": "a"},))).restarts == 0
