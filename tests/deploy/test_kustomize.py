"""What the manifests hold to: hardened pods, probes, budgets, secrets by reference; and that kustomize renders every part."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from portal import settings
from tests.deploy.rendered import (
    COMPONENTS,
    DEPLOY,
    KUSTOMIZE,
    Obj,
    named,
    of_kind,
    pod_templates,
    processes,
    render,
    with_components,
)

ALONE = {"Deployment basalt-beat"}
"""Of these there is to be exactly one: neither spread nor budget."""


@pytest.fixture(scope="module")
def base() -> tuple[Obj, ...]:
    return render(KUSTOMIZE / "base")


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Obj, ...]]:
    """The base, the base with each component, and the example."""
    scratch = tmp_path_factory.mktemp("rendered")
    found = {name: with_components(scratch, name) for name in COMPONENTS}
    return {"base": render(KUSTOMIZE / "base"), "example": render(KUSTOMIZE / "overlays" / "example"), **found}


def test_every_pod_passes_the_restricted_standard_with_a_read_only_root(everything: dict[str, tuple[Obj, ...]]) -> None:
    for where, objects in everything.items():
        for title, template in pod_templates(objects):
            spec = template["spec"]
            (container,) = spec["containers"]
            assert spec["securityContext"] == {
                "runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            }, (where, title)  # fmt: skip
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
            }, (where, title)  # fmt: skip
            writable = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
            assert writable == ["/var/lib/basalt", "/tmp"], (where, title)
            assert {*container["resources"]["requests"]} == {"cpu", "memory"}, (where, title)
            assert "memory" in container["resources"]["limits"], (where, title)


def test_nobody_gets_a_token_that_he_does_not_use(everything: dict[str, tuple[Obj, ...]]) -> None:
    for objects in everything.values():
        accounts = {obj["metadata"]["name"] for obj in of_kind(objects, "ServiceAccount")}
        used = set()
        for title, template in pod_templates(objects):
            account = template["spec"].get("serviceAccountName")
            assert (account is None) == (template["spec"].get("automountServiceAccountToken") is False), title
            used.add(account)
        assert used - {None} == accounts


def test_what_serves_has_probes_budgets_and_is_spread(everything: dict[str, tuple[Obj, ...]]) -> None:
    for objects in everything.values():
        budgets = [obj["spec"]["selector"]["matchLabels"] for obj in of_kind(objects, "PodDisruptionBudget")]
        for obj in of_kind(objects, "Deployment"):
            title, template = f"Deployment {obj['metadata']['name']}", obj["spec"]["template"]
            (container,) = template["spec"]["containers"]
            if title in ALONE:
                assert (obj["spec"]["replicas"], obj["spec"]["strategy"]) == (1, {"type": "Recreate"})
                continue
            assert obj["spec"]["replicas"] >= 2, title
            assert obj["spec"]["selector"]["matchLabels"] in budgets, title
            assert template["spec"]["topologySpreadConstraints"][0]["labelSelector"] == obj["spec"]["selector"], title
            assert "livenessProbe" in container, title
            if container.get("ports"):
                ports = {port["name"] for port in container["ports"]}
                assert container["livenessProbe"]["httpGet"]["path"] == "/healthz", title
                assert container["readinessProbe"]["httpGet"]["path"] == "/readyz", title
                assert container["startupProbe"]["httpGet"]["port"] in ports, title
        assert len(budgets) == len(of_kind(objects, "Deployment")) - len(
            ALONE & {f"Deployment {d['metadata']['name']}" for d in of_kind(objects, "Deployment")}
        )


def test_services_and_policies_reach_the_ports_that_are_there(everything: dict[str, tuple[Obj, ...]]) -> None:
    for objects in everything.values():
        ports = {
            template["metadata"]["labels"]["app.kubernetes.io/name"]: {
                p["name"] for p in template["spec"]["containers"][0].get("ports", ())
            }
            for _, template in pod_templates(objects)
        }
        for service in of_kind(objects, "Service"):
            wanted = {port["targetPort"] for port in service["spec"]["ports"]}
            assert wanted <= ports[service["spec"]["selector"]["app.kubernetes.io/name"]]
        shut = {name: set(there) - {"https"} for name, there in ports.items()}
        for policy in of_kind(objects, "NetworkPolicy"):
            assert policy["spec"]["policyTypes"] == ["Ingress"]
            for rule in policy["spec"].get("ingress", ()):
                selector = policy["spec"]["podSelector"]
                names = [*selector.get("matchLabels", {}).values()] or selector["matchExpressions"][0]["values"]
                for name in ports.keys() & set(names):
                    assert {port["port"] for port in rule["ports"]} <= ports[name]
                    shut[name] -= {port["port"] for port in rule["ports"]}
        assert not any(shut.values()), "nobody reaches these"


def test_secrets_are_only_referred_to_and_given_to_whom_needs_them(base: tuple[Obj, ...]) -> None:
    assert of_kind(base, "Secret") == []
    given = {title.partition(" basalt-")[2]: set(process.secrets) for title, process in processes(base).items()}
    assert given == {
        "web": {"BASALT_SECRET_KEY", "DATABASE_URL", "REDIS_URL"},
        "scheduler": {"DATABASE_URL", "REDIS_URL"},
        "controller": {"REDIS_URL"},
        "worker": {"DATABASE_URL", "REDIS_URL"},
        "mirror": {"DATABASE_URL", "REDIS_URL"},
        "beat": {"REDIS_URL"},
        "migrate": {"DATABASE_URL"},
    }


def test_every_setting_of_the_manifests_is_one(everything: dict[str, tuple[Obj, ...]]) -> None:
    known = set(re.findall(r"^([A-Z_]{5,}) ", settings.__doc__ or "", re.MULTILINE)) | {"FORWARDED_ALLOW_IPS"}
    for objects in everything.values():
        for process in processes(objects).values():
            assert {*process.env, *process.secrets} <= known, process.name


def test_copies_are_equal_to_what_they_are_copies_of() -> None:
    conf = "volcano-scheduler.conf"
    assert (KUSTOMIZE / "base" / conf).read_text() == (DEPLOY / conf).read_text()
    hardened = _patch(KUSTOMIZE / "base" / "hardened.yaml")
    assert _patch(KUSTOMIZE / "components" / "webhooks" / "hardened.yaml") == hardened
    deeper = [{**step, "path": f"/spec/jobTemplate{step['path']}"} for step in hardened]
    assert _patch(KUSTOMIZE / "components" / "tidy" / "hardened.yaml") == deeper
    assert _patch(KUSTOMIZE / "components" / "webhooks" / "hardened-cron.yaml") == deeper


def test_the_definitions_are_all_installed_or_none(base: tuple[Obj, ...], everything: dict[str, tuple[Obj, ...]]) -> None:
    files = {path.name.removesuffix(".yaml") for path in (DEPLOY / "crds").glob("*.yaml")}
    assert {obj["metadata"]["name"] for obj in of_kind(base, "CustomResourceDefinition")} == files
    assert of_kind(everything["beside-volcano"], "CustomResourceDefinition") == []


def test_without_celery_the_controller_works_by_itself(everything: dict[str, tuple[Obj, ...]]) -> None:
    objects = everything["threads"]
    found = processes(objects)
    assert "Deployment basalt-worker" not in found
    assert "Deployment basalt-beat" not in found
    assert found["Deployment basalt-controller"].env["BASALT_CONTROLLERS"] == "threads"
    assert found["CronJob basalt-tidy"].command == ("python", "manage.py", "tidy")
    for name in ("read", "write"):
        subjects = named(objects, "ClusterRoleBinding", f"basalt-controllers-{name}")["subjects"]
        assert [subject["name"] for subject in subjects] == ["basalt-controller"]


def test_the_portal_alone_decides_nothing(everything: dict[str, tuple[Obj, ...]]) -> None:
    objects = everything["portal-only"]
    assert {title.rpartition("basalt-")[2] for title in processes(objects)} == {"web", "mirror", "migrate", "tidy"}
    assert {obj["metadata"]["name"] for obj in of_kind(objects, "ServiceAccount")} == {"basalt-web", "basalt-mirror"}
    assert {obj["metadata"]["name"] for obj in of_kind(objects, "ClusterRole")} == {"basalt-read", "basalt-web", "basalt-mirror"}
    settled = processes(objects)["Deployment basalt-web"].env
    assert (settled["BASALT_SCHEDULER"], settled["BASALT_CONTROLLER"]) == ("off", "off")


def test_the_image_runs_as_the_manifests_say() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    assert "USER 10001:10001" in text
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE)[-1].startswith("python:3.11-slim")
    assert "BASALT_DATA=/var/lib/basalt" in text
    (command,) = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)
    web = processes(render(KUSTOMIZE / "base"))["Deployment basalt-web"].command
    assert yaml.safe_load(command) == list(web[: len(yaml.safe_load(command))])
    ours = [line for line in text.splitlines() if line.startswith("RUN ") and "install.sh" in line]
    assert ours == ["RUN /src/deploy/install.sh /opt/basalt"]


def test_the_build_is_given_what_the_install_script_takes() -> None:
    given = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")}
    script = (DEPLOY / "install.sh").read_text().replace("\\\n", " ")
    (taken,) = re.findall(r"^tar -cf - (.*?) \|", script, re.MULTILINE)
    folders = [word for word in shlex.split(taken) if not word.startswith("--")]
    assert given == {*folders, "package.json", "package-lock.json", ".npmrc", "deploy/constraints.txt", "deploy/install.sh"}
    root = Path(__file__).parents[2]
    assert all((root / path).exists() for path in given)
    rooms = {path.parent.name for path in root.glob("*/__init__.py")}
    assert rooms - {"bench", "tests", "testbed", "cli"} <= given, "a room is not installed"


def _patch(path: Path) -> list[Obj]:
    found: list[Obj] = yaml.safe_load(path.read_text())
    return found
