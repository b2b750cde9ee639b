"""The same for who is not root: pods have their own mounts in a user namespace, where the kernel allows that."""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from cluster.kinds import CONFIG_MAP, POD
from tests.cluster.processes.conftest import House, terminated

NOBODY = 65534
PYTHON = "/usr/bin/python3"


def as_nobody(work):
    """What `work(folder)` gives in a child that has become nobody."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            sys.executable = PYTHON
            folder = Path(tempfile.mkdtemp())
            os.write(write, json.dumps([work(folder), sorted(path.name for path in folder.glob("pods/*"))]).encode())
            shutil.rmtree(folder, ignore_errors=True)
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as answer:
        found = answer.read()
    assert os.waitpid(pid, 0)[1] == 0
    return json.loads(found)


@pytest.fixture
def nobody():
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    if not os.path.exists(PYTHON):
        pytest.skip(f"needs {PYTHON}, which every user may run")


def work(folder):
    house = House(folder)
    try:
        if not house.kubelet._warden.abilities.mounts:
            return {"skip": house.kubelet.missing}
        house.cluster.create(CONFIG_MAP, {"metadata": {"name": "c"}, "data": {"a": "from map\n"}})
        mounts = {"volumeMounts": [{"name": "c", "mountPath": "/etc/volcano"}]}
        house.pod(
            script="cat /etc/volcano/a; echo x > /etc/y; cat /etc/y; exit 4",
            container=mounts,
            volumes=[{"name": "c", "configMap": {"name": "c"}}],
        )
        code = terminated(house.ended())["exitCode"]
        printed = house.printed()
        house.cluster.delete(POD, "p", "default")
        house.gone()
        return {"code": code, "printed": printed}
    finally:
        house.end()


def test_mounts_work_without_being_root_and_nothing_is_left(nobody):
    found, folders = as_nobody(work)
    if "skip" in found:
        pytest.skip(str(found["skip"]))
    assert found == {"code": 4, "printed": ["from map", "x"]}
    assert [name for name in folders if name != "helper.json"] == []
