"""A real API server takes every manifest, and lets the pods of them into a namespace of the restricted standard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from testbed.server import ApiServer
from tests.deploy.rendered import COMPONENTS, KUSTOMIZE, Obj, of_kind, pod_templates, render, with_components

pytestmark = pytest.mark.services
FOREIGN = {"ServiceMonitor", "PrometheusRule"}
"""Kinds of operators that this server was not taught."""


@pytest.fixture(scope="module")
def server(api_server_binaries: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with our namespace and definitions."""
    server = ApiServer(tmp_path_factory.mktemp("server"))
    server.start()
    first = of_kind(render(KUSTOMIZE / "base"), "Namespace", "CustomResourceDefinition")
    server.kubectl("apply", "-f", "-", text=yaml.safe_dump_all(first), check=True)
    yield server
    server.stop()


def applied(server: ApiServer, objects: tuple[Obj, ...]) -> None:
    known = [obj for obj in objects if obj["kind"] not in FOREIGN]
    done = server.kubectl("apply", "--dry-run=server", "-f", "-", text=yaml.safe_dump_all(known))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(known)
    assert all(line.endswith("(server dry run)") for line in done.stdout.splitlines())


def test_the_base_and_the_example_are_taken(server: ApiServer) -> None:
    applied(server, render(KUSTOMIZE / "base"))
    applied(server, render(KUSTOMIZE / "overlays" / "example"))


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_component_is_taken(server: ApiServer, component: str, tmp_path: Path) -> None:
    applied(server, with_components(tmp_path, component))


def test_every_pod_is_let_into_the_namespace(server: ApiServer, tmp_path: Path) -> None:
    pods = []
    for where in (with_components(tmp_path, "threads"), with_components(tmp_path, "webhooks")):
        for number, (title, template) in enumerate(pod_templates(where)):
            kind, _, name = title.lower().partition(" ")
            meta = {**template["metadata"], "name": f"{name}-{kind}-{number}-{len(pods)}", "namespace": "basalt-system"}
            pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]})
    done = server.kubectl("create", "--dry-run=server", "-f", "-", text=yaml.safe_dump_all(pods))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(pods)
    loose = {**pods[0], "spec": {**pods[0]["spec"], "securityContext": {}}}
    refused = server.kubectl("create", "--dry-run=server", "-f", "-", text=yaml.safe_dump(loose))
    assert 'violates PodSecurity "restricted' in refused.stderr, "the namespace enforces nothing"
