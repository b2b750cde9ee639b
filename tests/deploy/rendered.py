"""What the folders of deploy/kustomize come to: objects, and the processes that they start."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.server import binary

DEPLOY = Path(__file__).parents[2] / "deploy"
KUSTOMIZE = DEPLOY / "kustomize"
COMPONENTS = sorted(path.parent.name for path in KUSTOMIZE.glob("components/*/kustomization.yaml"))
Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Process:
    """One container: whose rights it has, what it runs, and its environment; `secrets` are keys of Secret `basalt-secrets`."""

    name: str
    account: str
    command: tuple[str, ...]
    env: dict[str, str]
    secrets: tuple[str, ...]


@cache
def render(folder: Path) -> tuple[Obj, ...]:
    """The objects of a kustomization, in kubectl's order; skips where there is no kubectl."""
    kubectl = binary("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl")
    done = subprocess.run([kubectl, "kustomize", str(folder)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "kustomize warns"
    return tuple(yaml.safe_load_all(done.stdout))


def with_components(scratch: Path, *names: str) -> tuple[Obj, ...]:
    """The base with components; written into a copy, since kustomize does not look outside the folder that names them."""
    copy = scratch / "deploy"
    if not copy.exists():
        shutil.copytree(DEPLOY, copy)
    folder = copy / "kustomize" / "overlays" / "-".join(names or ("base",))
    folder.mkdir(parents=True)
    text = {"resources": ["../../base"], "components": [f"../../components/{name}" for name in names]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(text))
    return render(folder)


def of_kind(objects: Sequence[Obj], *kinds: str) -> list[Obj]:
    return [obj for obj in objects if obj["kind"] in kinds]


def named(objects: Sequence[Obj], kind: str, name: str) -> Obj:
    return next(obj for obj in of_kind(objects, kind) if obj["metadata"]["name"] == name)


def pod_templates(objects: Sequence[Obj]) -> Iterator[tuple[str, Obj]]:
    """Kind and name of everything that makes pods, with its template."""
    for obj in of_kind(objects, "Deployment", "Job", "CronJob"):
        spec = obj["spec"]["jobTemplate"]["spec"] if obj["kind"] == "CronJob" else obj["spec"]
        yield f"{obj['kind']} {obj['metadata']['name']}", spec["template"]


def processes(objects: Sequence[Obj]) -> dict[str, Process]:
    """Every container by the name of what makes it."""
    configured = {obj["metadata"]["name"]: obj["data"] for obj in of_kind(objects, "ConfigMap")}
    found = {}
    for title, template in pod_templates(objects):
        (container,) = template["spec"]["containers"]
        env: dict[str, str] = {}
        for source in container.get("envFrom") or ():
            env |= configured[source["configMapRef"]["name"]]
        secrets = []
        for each in container.get("env") or ():
            if "value" in each:
                env[each["name"]] = each["value"]
            else:
                reference = each["valueFrom"]["secretKeyRef"]
                assert (reference["name"][:14], reference["key"]) == ("basalt-secrets", each["name"])
                secrets.append(each["name"])
        account = template["spec"].get("serviceAccountName", "")
        found[title] = Process(title, account, tuple(container["command"]), env, tuple(secrets))
    return found
