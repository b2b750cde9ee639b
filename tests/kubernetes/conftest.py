"""A real API server for the whole run, or a skip that says what is missing."""

from collections.abc import Iterator

import pytest

from tests.kubernetes.server import ApiServer, binary


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """kube-apiserver and etcd from `KUBEBUILDER_ASSETS` or /usr/local/kubebuilder/bin."""
    for name in ("kube-apiserver", "etcd", "kubectl"):
        if binary(name) is None:
            pytest.skip(f"no {name}: set KUBEBUILDER_ASSETS to a folder that has it")
    server = ApiServer(tmp_path_factory.mktemp("kubernetes"))
    server.start()
    yield server
    server.stop()
