"""A cluster that gives each process its own service account's rights and nothing more, and writes down who asked for what."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import requests
import yaml

from testbed.server import ApiServer, free_port
from testbed.stack import PASSWORD, ROOT, Stack, eventually
from tests.deploy.rendered import Obj, Process, named, of_kind, processes

NAMESPACE = "basalt-system"
PATIENCE = 120.0
HOST = "basalt.example.com"
_PREFIX = f"system:serviceaccount:{NAMESPACE}:"
_AUDIT = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:basalt-system"]
- level: None
"""


class Asked(NamedTuple):
    """One thing that a service account may do, or did."""

    account: str
    verb: str
    group: str
    resource: str


@dataclass(frozen=True, slots=True)
class Log:
    """What was asked for, and what of it was forbidden."""

    asked: frozenset[Asked]
    forbidden: frozenset[Asked]


class StrictServer(ApiServer):
    """An API server that audits every request of ours, and insists on rights over the finalizers of owners, as OpenShift does."""

    def _auditing(self) -> tuple[str, ...]:
        policy = self.folder / "audit-policy.yaml"
        policy.write_text(_AUDIT)
        plugin = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
        return (f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}", plugin)

    def kubeconfig_of(self, user: str) -> Path:
        """The file of a service account, with a token as the kubelet would put it into a pod."""
        made = self.kubectl("create", "token", user, "-n", NAMESPACE, "--duration", "24h", check=True)
        path = self.folder / f"kubeconfig-{user}"
        path.write_text(yaml.safe_dump(self._config(made.stdout.strip())))
        return path

    def audited(self) -> Log:
        """The log until now."""
        asked, forbidden = set(), set()
        for line in self.audit_log.read_text().splitlines():
            entry = json.loads(line)
            about = entry.get("objectRef") or {}
            if "resource" not in about:
                continue  # /api and the like: discovery, which everybody may read
            resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            one = Asked(entry["user"]["username"].removeprefix(_PREFIX), entry["verb"], about.get("apiGroup", ""), resource)
            refused = entry.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
            (forbidden if refused or entry["responseStatus"]["code"] == 403 else asked).add(one)
        return Log(frozenset(asked), frozenset(forbidden))


def granted(objects: Sequence[Obj]) -> frozenset[Asked]:
    """Everything that the bindings of a kustomization grant to our service accounts."""
    return frozenset(
        Asked(subject["name"], verb, group, resource)
        for binding in of_kind(objects, "ClusterRoleBinding", "RoleBinding")
        for subject in binding["subjects"]
        for rule in named(objects, binding["roleRef"]["kind"], binding["roleRef"]["name"])["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    )


class Deployed(Stack):
    """Processes as the manifests start them: command, environment, account. Only addresses and paths are this machine's."""

    def __init__(self, server: ApiServer, folder: Path, objects: Sequence[Obj], secrets: dict[str, str]) -> None:
        super().__init__(server, folder)
        self._server, self._secrets = server, secrets
        self._known: dict[str, Process] = processes(objects)
        self._session.headers.update({"Host": HOST, "X-Forwarded-Proto": "https"})

    def begin(self, title: str, *extra: str) -> None:
        """Start what a Deployment starts."""
        process = self._known[title]
        name = title.rpartition("basalt-")[2]
        command = [*self._command(name, process), *extra]
        with (self.folder / f"{name}.log").open("ab") as log:
            environment = self._environment_of(name, process)
            self._processes[name] = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)

    def wait_ready(self, *names: str) -> None:
        """Wait, with patience: seven processes begin at once."""
        for name in names:
            eventually(
                lambda name=name: self._is_ready(name), PATIENCE, why=lambda name=name: f"{name}: {self.log(name)[-3000:]}"
            )

    def once(self, title: str, *extra: str) -> str:
        """Run what a Job or CronJob runs; what it says."""
        process = self._known[title]
        name = title.rpartition("basalt-")[2]
        command = [*self._command(name, process), *extra]
        environment = self._environment_of(name, process)
        done = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, timeout=180)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def sign_in(self) -> None:
        """A user, and a token for REST."""
        process = self._known["Deployment basalt-web"]
        environment = {**self._environment_of("web", process), "DJANGO_SUPERUSER_PASSWORD": PASSWORD}
        command = [
            sys.executable,
            "manage.py",
            "createsuperuser",
            "--noinput",
            "--username",
            "admin",
            "--email",
            "a@tests.example",
        ]
        done = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, timeout=120)
        assert done.returncode == 0 or "already taken" in done.stderr, done.stderr
        signed = self._session.post(self.url("web", "/api/v1/auth/login"), auth=("admin", PASSWORD), timeout=10)
        self._session.headers["Authorization"] = f"Token {signed.json()['token']}"

    def page(self, path: str) -> requests.Response:
        """A page, as a browser behind the proxy asks for it; without signing in."""
        heads = {"Host": HOST, "X-Forwarded-Proto": "https"}
        return requests.get(self.url("web", path), headers=heads, timeout=10, allow_redirects=False)

    def _environment_of(self, name: str, process: Process) -> dict[str, str]:
        data = self.folder / name
        data.mkdir(exist_ok=True)
        if "BASALT_WORKER_LISTEN" in process.env:
            self.ports[name] = self.ports.get(name) or free_port()
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent",
            "BASALT_PRODUCTION": "1",
            "BASALT_DATA": str(data),
            "BASALT_NAMESPACE": NAMESPACE,
            **process.env,
            **{key: self._secrets[key] for key in process.secrets},
        }
        if "BASALT_WORKER_LISTEN" in process.env:
            environment["BASALT_WORKER_LISTEN"] = f"127.0.0.1:{self.ports[name]}"
        if "BASALT_WEB_LISTEN" in process.env:
            port = self.ports[f"{name}-metrics"] = self.ports.get(f"{name}-metrics") or free_port()
            environment["BASALT_WEB_LISTEN"] = f"127.0.0.1:{port}"
        if process.account:
            environment["KUBECONFIG"] = str(self._server.kubeconfig_of(process.account))
        return environment

    def _command(self, name: str, process: Process) -> list[str]:
        return list(self._on_this_machine(name, process.command))

    def _on_this_machine(self, name: str, command: Sequence[str]) -> Iterator[str]:
        program, *arguments = command
        yield sys.executable
        if program != "python":
            yield from ("-m", program)
        before = program
        for argument in arguments:
            if before in ("--listen", "--port", "--serve"):
                self.ports[name if before != "--serve" else f"{name}-tls"] = free = free_port()
                argument = str(free) if before == "--port" else f"127.0.0.1:{free}"
            elif argument == "0.0.0.0":
                argument = "127.0.0.1"
            elif argument == "/certificates":
                argument = str(self.folder / "certificates")
            before = argument if argument.startswith("--") else ""
            yield argument
