"""The scheduler's configuration in a ConfigMap of a real API server: saved on the page, changed by kubectl, killed in between."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from cluster import runtime
from cluster.errors import Forbidden
from cluster.kinds import CONFIG_MAP
from cluster.kubernetes import KubernetesCluster, connect
from portal.cockpit.places import MapPlace
from scheduler.configmap import KEY, MapKey
from testbed.server import ApiServer
from testbed.stack import ROOT, Stack, eventually

TEXT = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n'
OTHER = TEXT.replace("allocate", "allocate, backfill")
THEIRS = TEXT.replace("  - name: gang\n", "  - name: gang\n  - name: binpack\n")
MAP = "schedulers-own"
KILLED = """
import os, signal, sys, django
django.setup()
from cluster import runtime
from portal import services
from portal.cockpit import configuration, places, versions
runtime.use(services.checked())
write = places.MapPlace.write
def dies(self, text, live):
    if sys.argv[1] == "after":
        write(self, text, live)
    os.kill(os.getpid(), signal.SIGKILL)
places.MapPlace.write = dies
configuration.save(sys.argv[2], versions.newest().pk, "boss")
"""


@pytest.fixture(scope="module")
def basalt(api_server: ApiServer, backend: KubernetesCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A scheduler that watches a ConfigMap, which is not there yet, and the pages."""
    stack = Stack(api_server, tmp_path_factory.mktemp("configuration"), BASALT_SCHEDULER_CONFIGMAP=f"default/{MAP}")
    stack.prepare()
    stack.start("scheduler")
    stack.serve()
    stack.wait_ready("scheduler")
    yield stack
    stack.stop()
    backend.delete(CONFIG_MAP, MAP, "default")


def told(basalt: Stack) -> dict[str, Any]:
    answer = basalt.rest("GET", "scheduler/configuration")
    return answer.json() if answer.ok else {}


def save(basalt: Stack, text: str, version: int) -> int:
    return basalt.rest("PUT", "scheduler/configuration", json={"text": text, "version": version}).status_code


def in_force(basalt: Stack, text: str) -> dict[str, Any]:
    """What is told once the scheduler runs by a text."""
    return eventually(lambda: (found := told(basalt)).get("text") == text and found, why=lambda: basalt.log("scheduler")[-2000:])


def live(backend: KubernetesCluster) -> dict[str, str]:
    return backend.get(CONFIG_MAP, MAP, "default")["data"]


def versions(basalt: Stack) -> list[tuple[str, str]]:
    return [(each["who"], each["writing"]) for each in basalt.rest("GET", "scheduler/configuration/versions").json()]


def test_one_that_is_absent_is_made_and_taken_up(basalt: Stack, backend: KubernetesCluster) -> None:
    first = eventually(lambda: told(basalt))
    assert (first["absent"], first["writable"], first["place"]) == (True, True, f"default/{MAP}:{KEY}")
    assert first["source"].endswith("deploy/volcano-scheduler.conf")
    assert save(basalt, TEXT, first["version"]) == 200
    found = in_force(basalt, TEXT)
    assert (found["source"], found["in_force"], found["absent"]) == (f"default/{MAP}:{KEY}", found["version"], False)
    assert live(backend) == {KEY: TEXT}
    (entry,) = backend.get(CONFIG_MAP, MAP, "default")["metadata"]["managedFields"]
    assert entry["manager"] == "basalt-portal"


def test_what_kubectl_writes_is_taken_up_and_not_overwritten(
    basalt: Stack, api_server: ApiServer, backend: KubernetesCluster
) -> None:
    base = told(basalt)["version"]
    body = json.dumps({"data": {KEY: THEIRS}})
    api_server.kubectl("patch", "configmap", MAP, "--type=merge", "-p", body, check=True)
    assert save(basalt, OTHER, base) == 409
    assert live(backend) == {KEY: THEIRS}
    found = in_force(basalt, THEIRS)
    newest = basalt.rest("GET", "scheduler/configuration/versions").json()[0]
    assert (found["version"], newest["version"], newest["who"]) == (newest["version"], found["in_force"], "")
    assert save(basalt, OTHER, found["version"]) == 200
    assert in_force(basalt, OTHER)["in_force"] > found["version"]


def test_a_broken_one_is_not_used_and_the_last_good_one_is_put_back(basalt: Stack, backend: KubernetesCluster) -> None:
    good = told(basalt)
    backend.patch(CONFIG_MAP, MAP, "default", {"data": {KEY: "actions: 3\n"}})
    found = eventually(lambda: (now := told(basalt))["faults"] and now)
    assert (found["text"], found["in_force"]) == (good["text"], good["in_force"])
    assert found["version"] > good["version"]
    since = found["since"]
    assert basalt.end("scheduler") == 0
    basalt.start("scheduler")
    found = eventually(lambda: (now := told(basalt))["since"] != since and now)
    assert (found["text"], found["in_force"], len(found["faults"]) > 0) == (good["text"], good["in_force"], True)
    assert save(basalt, good["text"], found["version"]) == 200
    eventually(lambda: not told(basalt)["faults"])


@pytest.mark.parametrize("moment", ["before", "after"])
def test_who_is_killed_while_saving_leaves_nothing_that_never_ran(basalt: Stack, backend: KubernetesCluster, moment: str) -> None:
    eventually(lambda: (now := told(basalt))["in_force"] == now["version"])
    before = told(basalt)["text"]
    text = f"# {moment}\n{TEXT}"
    died = subprocess.run(
        [sys.executable, "-c", KILLED, moment, text],
        cwd=ROOT,
        env={**basalt.environment, "DJANGO_SETTINGS_MODULE": "portal.settings"},
        timeout=60,
    )
    assert died.returncode == -signal.SIGKILL
    assert live(backend)[KEY] == (text if moment == "after" else before)
    if moment == "after":
        assert in_force(basalt, text)["in_force"] == told(basalt)["version"]
        assert versions(basalt)[0] == ("boss", "done")
        return
    assert versions(basalt)[0] == ("boss", "begun")
    assert told(basalt)["text"] == before
    assert save(basalt, THEIRS, told(basalt)["version"]) == 200
    in_force(basalt, THEIRS)
    assert versions(basalt)[:2] == [("admin", "done"), ("boss", "lost")]


def test_a_scheduler_that_begins_anew_begins_with_it(basalt: Stack) -> None:
    text = told(basalt)["text"]
    count = len(versions(basalt))
    assert basalt.end("scheduler") == 0
    basalt.start("scheduler")
    basalt.wait_ready("scheduler")
    assert in_force(basalt, text)["source"] == f"default/{MAP}:{KEY}"
    assert len(versions(basalt)) == count


def test_without_the_right_it_is_told_before_anything_is_written(
    basalt: Stack, api_server: ApiServer, backend: KubernetesCluster
) -> None:
    api_server.kubectl("create", "serviceaccount", "looker", check=True)
    api_server.kubectl("create", "rolebinding", "looker", "--clusterrole=view", "--serviceaccount=default:looker", check=True)
    api_server.kubectl("create", "role", "looker", "--verb=get", "--resource=configmaps", check=True)
    api_server.kubectl("create", "rolebinding", "looks", "--role=looker", "--serviceaccount=default:looker", check=True)
    token = api_server.kubectl("create", "token", "looker", check=True).stdout.strip()
    looker = connect(api_server.url, token, str(api_server.authority))
    before = live(backend)
    runtime.use(looker)
    try:
        place = MapPlace(MapKey("default", MAP))
        found = place.read()
        assert found.text == before[KEY]
        why = place.refused(found)
        assert f"The portal has no right to write the ConfigMap default/{MAP}" in why
        assert "system:serviceaccount:default:looker" in why
        with pytest.raises(Forbidden):
            place.write(OTHER, found)
    finally:
        runtime.use(None)
        looker.close()
    assert live(backend) == before
