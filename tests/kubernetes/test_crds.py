"""The definitions of Basalt's kinds: the files in deploy/, and what a real API server makes of them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from cluster.kinds import JOB, KINDS, POD_GROUP
from portal.crds import words
from portal.crds.definitions import DEFINED, Defined, definition
from portal.crds.install import manifests
from testbed.server import ApiServer

DEPLOY = Path(__file__).parents[2] / "deploy" / "crds"
OWN = {defined.name for defined in DEFINED}


def job(**spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox"}
    tasks = [{"name": "worker", "replicas": 2, "template": {"spec": {"containers": [container]}}}]
    meta = {"name": "example", "namespace": "default"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta, "spec": {"tasks": tasks} | spec}


def test_every_volcano_kind_has_a_definition() -> None:
    assert {str(kind) for kind in KINDS if kind.group.endswith("volcano.sh")} == OWN


def test_the_files_in_deploy_are_the_definitions() -> None:
    assert {path.name: path.read_text("utf-8") for path in DEPLOY.glob("*.yaml")} == dict(manifests()), (
        "run: python manage.py install-crds --write deploy/crds"
    )


def test_a_pod_group_has_no_status_subresource_as_volcanos_has_none() -> None:
    versions = {str(defined.kind): definition(defined)["spec"]["versions"][0] for defined in DEFINED}
    assert "subresources" not in versions[str(POD_GROUP)]
    assert versions[str(JOB)]["subresources"] == {"status": {}}


@pytest.mark.parametrize("defined", DEFINED, ids=lambda defined: defined.kind.kind)
def test_kubectl_can_explain_every_field_that_is_ours(defined: Defined) -> None:
    schema = definition(defined)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["description"]
    ours = schema["properties"]["spec"] if "spec" in schema["properties"] and defined.kind.kind != "JobTemplate" else schema
    if defined.kind.kind == "Numatopology":
        return  # an agent writes it, and nobody by hand
    silent = [name for name, field in ours["properties"].items() if "description" not in field]
    assert [name for name in silent if name not in ("apiVersion", "kind", "metadata")] == []


def test_no_description_is_of_a_field_that_is_not_there() -> None:
    used: set[str] = set()

    def look(schema: dict[str, Any]) -> None:
        used.add(schema.get("description", ""))
        for field in (schema.get("properties") or {}).values():
            look(field)
            look(field.get("items") or {})

    for defined in DEFINED:
        look(definition(defined)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    assert set(words.FIELDS.values()) - used == set()


def test_no_cluster_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no cluster to talk to"):
        call_command("install-crds", kubeconfig=str(tmp_path / "missing"))


@pytest.fixture(scope="module")
def installed(api_server_binaries: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server of its own that knows our kinds, by the command that users run."""
    server = ApiServer(tmp_path_factory.mktemp("definitions"))
    server.start()
    assert _install(server).count(": created") == len(OWN)
    yield server
    server.stop()


def _install(server: ApiServer) -> str:
    command = [sys.executable, "manage.py", "install-crds", "--kubeconfig", str(server.kubeconfig)]
    done = subprocess.run(command, cwd=DEPLOY.parents[1], text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


class TestRealServer:
    def test_a_second_installation_changes_nothing(self, installed: ApiServer) -> None:
        assert _install(installed).count(": unchanged") == len(OWN)

    def test_definitions_of_others_are_left_alone(self, installed: ApiServer) -> None:
        name = "commands.bus.volcano.sh"
        installed.kubectl("label", "crd", name, "app.kubernetes.io/managed-by-", check=True)
        assert f"{name}: left as it is: somebody else installed it" in _install(installed)
        installed.kubectl("label", "crd", name, "app.kubernetes.io/managed-by=basalt", check=True)

    def test_kubectl_knows_the_short_names_and_columns(self, installed: ApiServer) -> None:
        assert installed.kubectl("create", "-f", "-", text=yaml.safe_dump(job())).returncode == 0
        assert installed.kubectl("get", "vj", "example").stdout.split()[:5] == [
            "NAME",
            "STATUS",
            "MINAVAILABLE",
            "RUNNINGS",
            "AGE",
        ]
        assert installed.kubectl("get", "q,pg,hn,jf,jt,cronvcjob").returncode == 0
        installed.kubectl("delete", "vcjob", "example")

    @pytest.mark.parametrize(
        ("broken", "says"),
        [
            ({"tasks": []}, "spec.tasks in body should have at least 1 items"),
            ({"tasks": [{"name": "a", "replicas": 1}]}, "spec.tasks[0].template: Required value"),
            ({"minAvailable": -1}, "spec.minAvailable in body should be greater than or equal to 0"),
            ({"policies": [{"event": "Never", "action": "AbortJob"}]}, "spec.policies[0].event: Unsupported value"),
            ({"policies": [{"event": "PodFailed", "action": "Explode"}]}, "spec.policies[0].action: Unsupported value"),
            ({"policies": [{"event": "PodFailed"}]}, "spec.policies[0].action: Required value"),
            ({"policies": [{"event": "PodFailed", "exitCode": 3, "action": "AbortJob"}]}, "events or an exitCode, not both"),
            ({"policies": [{"action": "AbortJob"}]}, "an entry needs an event or an exitCode"),
            ({"policies": [{"exitCode": 0, "action": "AbortJob"}]}, "exitCode must not be 0"),
            ({"volumes": [{"mountPath": "a:b", "volumeClaimName": "c"}]}, "spec.volumes[0].mountPath"),
            ({"networkTopology": {"mode": "solid"}}, "spec.networkTopology.mode: Unsupported value"),
        ],
    )
    def test_what_a_schema_can_refuse_is_refused(self, installed: ApiServer, broken: dict[str, Any], says: str) -> None:
        done = installed.kubectl("create", "--dry-run=server", "-f", "-", text=yaml.safe_dump(job(**broken)))
        assert done.returncode != 0
        assert says in done.stderr

    def test_a_role_cannot_need_more_pods_than_it_has(self, installed: ApiServer) -> None:
        wrong = job()
        wrong["spec"]["tasks"][0]["minAvailable"] = 3
        done = installed.kubectl("create", "--dry-run=server", "-f", "-", text=yaml.safe_dump(wrong))
        assert "minAvailable must not be above replicas" in done.stderr

    def test_what_may_not_change_is_refused_and_what_may_is_taken(self, installed: ApiServer) -> None:
        assert installed.kubectl("create", "-f", "-", text=yaml.safe_dump(job(queue="default"))).returncode == 0
        moved = installed.kubectl("patch", "vj", "example", "--type=merge", "-p", '{"spec": {"queue": "other"}}')
        assert "queue cannot change any more" in moved.stderr
        scaled = '[{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 5}]'
        assert installed.kubectl("patch", "vj", "example", "--type=json", "-p", scaled).returncode == 0
        installed.kubectl("delete", "vj", "example")

    def test_fields_that_no_shape_names_are_kept(self, installed: ApiServer) -> None:
        text = yaml.safe_dump(job(somethingNew={"deep": [1]}))
        done = installed.kubectl("create", "--dry-run=server", "-o", "yaml", "-f", "-", text=text)
        assert yaml.safe_load(done.stdout)["spec"]["somethingNew"] == {"deep": [1]}

    def test_every_valid_real_manifest_is_taken(self, installed: ApiServer, shared_dir: Path) -> None:
        refused = {}
        for path in sorted((shared_dir / "data" / "manifests").rglob("*.yaml")):
            for document in yaml.safe_load_all(path.read_text("utf-8")):
                if document and "volcano.sh" in document.get("apiVersion", "") and document["kind"] in KNOWN:
                    document["metadata"].pop("namespace", None)
                    done = installed.kubectl("create", "--dry-run=server", "-f", "-", text=yaml.safe_dump(document))
                    if done.returncode:
                        refused[path.name] = done.stderr
        # a text in the place of a list of events: Volcano's server refuses it too
        assert set(refused) <= {"job-policy-task-overrides.yaml"}, refused


KNOWN = {defined.kind.kind for defined in DEFINED}
