"""A real API server for the whole run, or a skip that says what is missing."""

import contextlib
from collections.abc import Iterator

import pytest

from cluster.errors import NotFound
from cluster.kinds import CONFIG_MAP, JOB, NETWORK_POLICY, NODE, POD, POD_GROUP, SECRET, SERVICE
from cluster.kubernetes import KubernetesCluster, connect
from cluster.objects import name, namespace
from testbed.collector import Collector
from testbed.kubelet import FakeKubelet
from testbed.server import TOKEN, ApiServer
from testbed.stack import Stack, eventually


@pytest.fixture(scope="session")
def api_server(api_server_binaries: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """kube-apiserver and etcd from `KUBEBUILDER_ASSETS` or /usr/local/kubebuilder/bin."""
    server = ApiServer(tmp_path_factory.mktemp("kubernetes"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def backend(api_server: ApiServer) -> Iterator[KubernetesCluster]:
    """The tests' own client."""
    cluster = connect(api_server.url, TOKEN, str(api_server.authority))
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def stack(api_server: ApiServer, backend: KubernetesCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Basalt's processes, none started yet; a collector and nothing else of Kubernetes beside the server."""
    stack = Stack(api_server, tmp_path_factory.mktemp("stack"))
    stack.prepare()
    collector = Collector(backend, (JOB, POD_GROUP, POD, SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY))
    collector.start()
    yield stack
    stack.stop()
    for kind in (JOB, POD_GROUP, POD):
        for obj in backend.list(kind).items:
            with contextlib.suppress(NotFound):
                backend.delete(kind, name(obj), namespace(obj), grace_seconds=0 if kind == POD else None)
    eventually(lambda: not backend.list(SERVICE, labels="volcano.sh/job-name").items)
    collector.stop()
    for obj in backend.list(NODE).items:
        backend.delete(NODE, name(obj))


@pytest.fixture(scope="module")
def kubelet(backend: KubernetesCluster) -> Iterator[FakeKubelet]:
    """Four nodes of 8 CPUs and what runs on them."""
    kubelet = FakeKubelet(backend)
    kubelet.add_nodes([f"node-{number}" for number in range(4)])
    kubelet.start()
    yield kubelet
    kubelet.stop()
