"""A kubelet that really runs programs, over a cluster in memory; tests of it are skipped where this kernel does not let it."""

import os
import time

import pytest

from cluster.admission import Admission
from cluster.embedded.processes.kubelet import ProcessKubelet, Settings
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import NotFound
from cluster.kinds import NODE, POD
from cluster.logs.store import LogStore
from cluster.port import Binding


class House:
    """One cluster, one data folder, one kubelet, which can be ended and begun again."""

    def __init__(self, folder, **settings):
        self.folder, self.settings = folder, settings
        self.cluster = EmbeddedCluster(admission=Admission())
        amounts = {"cpu": "64", "memory": "64Gi", "pods": "1000", "nvidia.com/gpu": "8"}
        self.cluster.create(NODE, {"metadata": {"name": "n"}, "status": {"allocatable": amounts}})
        self.cluster.patch_status(NODE, "n", "", {"allocatable": amounts})
        self.logs = LogStore(folder / "logs")
        self.kubelet = None
        self.begin()

    def begin(self):
        self.kubelet = ProcessKubelet(self.cluster, Settings(self.folder, **self.settings))

    def end(self):
        if self.kubelet is not None:
            self.kubelet.end_all(0.2)
            self.kubelet.close()
            self.kubelet = None

    def pod(self, name="p", script="", *, command=None, container=None, annotations=None, **spec):
        """A pod on the node; `script` is for the shell."""
        main = {"name": "main", "command": command or ["sh", "-c", script]} | (container or {})
        spec = {"restartPolicy": "Never", "containers": [main]} | spec
        made = self.cluster.create(POD, {"metadata": {"name": name, "annotations": annotations or {}}, "spec": spec})
        self.cluster.bind(Binding("default", name, made["metadata"]["uid"], "n"))
        return self.get(name)

    def get(self, name="p"):
        return self.cluster.get(POD, name, "default")

    def until(self, condition, seconds=30):
        """Let the kubelet work until the condition holds; what it gave."""
        end = time.monotonic() + seconds
        while True:
            self.kubelet.step()
            if found := condition():
                return found
            assert time.monotonic() < end, f"not within {seconds} s"
            self.kubelet.listen(0.2)

    def ended(self, name="p", seconds=30):
        """The pod, once it is over."""
        return self.until(lambda: self.phase(name) in ("Succeeded", "Failed") and self.get(name), seconds)

    def phase(self, name="p"):
        return (self.get(name).get("status") or {}).get("phase")

    def printed(self, name="p", container="main", attempt=None):
        """The lines of a container's log."""
        uid = self.get(name)["metadata"]["uid"]
        attempts = self.logs.attempts(uid, container)
        if not attempts:
            return []
        records, _ = self.logs.stream(uid, container, attempts[-1] if attempt is None else attempt).read((0, 0), 1 << 30)
        return [record.text.decode(errors="replace") for record in records]

    def prints(self, line, name="p", container="main"):
        """Wait until a container has printed a line."""
        self.until(lambda: line in self.printed(name, container))

    def gone(self, name="p"):
        def is_gone():
            try:
                self.get(name)
            except NotFound:
                return True
            return False

        return self.until(is_gone)


def terminated(pod, container=0):
    """How a container of a pod ended."""
    return pod["status"]["containerStatuses"][container]["state"]["terminated"]


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    yield made
    made.end()


@pytest.fixture
def moved_house(house):
    """The same, where pods have mount namespaces."""
    if (why := dict(house.kubelet.missing).get("mounts")) is not None:
        pytest.skip(f"no mount namespaces here: {why}")
    return house


@pytest.fixture
def as_root():
    if os.geteuid() != 0:
        pytest.skip("only root can give programs other users")
