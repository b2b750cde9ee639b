"""The port's promises, kept by a real API server."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest
from django.core.management import call_command

from cluster.errors import AlreadyExists, ApiError, BadRequest, NotFound
from cluster.kinds import CONFIG_MAP, NAMESPACE, NODE, POD, POD_GROUP, QUEUE
from cluster.kubernetes import KubernetesCluster, connect
from testbed.collector import Collector
from testbed.server import TOKEN, ApiServer
from tests.cluster.port_objects import NS
from tests.cluster.port_suite import PortSuite


@pytest.fixture(scope="module")
def server(api_server: ApiServer) -> Iterator[KubernetesCluster]:
    call_command("install-crds", kubeconfig=str(api_server.kubeconfig))
    cluster = connect(api_server.url, TOKEN, authority=str(api_server.authority))
    for name in (NS, "suite-other"):
        with contextlib.suppress(AlreadyExists):
            cluster.create(NAMESPACE, {"metadata": {"name": name}})
    collector = Collector(connect(api_server.url, TOKEN, authority=str(api_server.authority)), [CONFIG_MAP])
    collector.start()
    yield cluster
    collector.stop()
    cluster.close()


@pytest.fixture
def port(server: KubernetesCluster) -> KubernetesCluster:
    for kind, namespace in ((CONFIG_MAP, NS), (CONFIG_MAP, "suite-other"), (POD, NS), (POD_GROUP, NS)):
        for obj in server.list(kind, namespace).items:
            meta = obj["metadata"]
            if meta.get("finalizers"):
                server.patch(kind, meta["name"], namespace, {"metadata": {"finalizers": None}})
            with contextlib.suppress(NotFound):  # gone with its last finalizer
                server.delete(kind, meta["name"], namespace, grace_seconds=0)
    for kind in (NODE, QUEUE):
        for obj in server.list(kind).items:
            server.delete(kind, obj["metadata"]["name"])
    return server


class TestPort(PortSuite):
    def eventually(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + 10
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.02)

    def check_place(self, error: ApiError, place: str) -> None:
        """A server names the map or list at fault, not the key or index; what is of another type it only says in words."""
        if isinstance(error, BadRequest):
            assert ".".join(place.split("/")[1:3]) in str(error)
        else:
            place = place.replace("/0", "")
            assert any(place == fault.pointer or place.startswith(f"{fault.pointer}/") for fault in error.fields)
