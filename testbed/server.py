"""A real kube-apiserver on etcd, started for tests and measurements where a machine has their binaries."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import requests
import yaml
from kubernetes import client, config

_FOLDERS = (os.environ.get("KUBEBUILDER_ASSETS", ""), "/usr/local/kubebuilder/bin")
_START_SECONDS = 90
TOKEN = "tests-token"

_AUDITED = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: Metadata
"""


def binary(name: str) -> str | None:
    """Where a Kubernetes developer's machine has `kube-apiserver`, `etcd` or `kubectl`; None where it has not."""
    for folder in filter(None, _FOLDERS):
        if os.access(path := os.path.join(folder, name), os.X_OK):
            return path
    return None if name == "kube-apiserver" else shutil.which(name)


class ApiServer:
    """One API server with its etcd, both in a folder of their own; admin by a token.

    `users` are further administrators, each with its name as its token. `audited`: every write is kept in `audit_log`.
    """

    def __init__(self, folder: Path, *, users: Sequence[str] = (), audited: bool = False) -> None:
        self.folder = folder
        self.port = free_port()
        self._users, self._audited = users, audited
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def authority(self) -> Path:
        """The certificate by which the server is known."""
        return self.folder / "certs" / "apiserver.crt"

    @property
    def pids(self) -> list[int]:
        """The processes of etcd and the API server."""
        return [process.pid for process in self._processes]

    @property
    def audit_log(self) -> Path:
        """Where an audited server writes down every write, a line of JSON each."""
        return self.folder / "audit.log"

    @property
    def client(self) -> client.ApiClient:
        return config.new_client_from_config(str(self.kubeconfig))

    def start(self) -> None:
        """Start both and wait until the server says that it is ready."""
        self._etcd_port = free_port()
        key, tokens = self.folder / "sa.key", self.folder / "tokens.csv"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        everybody = {TOKEN: "admin", **{name: name for name in self._users}}
        tokens.write_text("".join(f"{token},{name},{name},system:masters\n" for token, name in everybody.items()))
        etcd = f"http://127.0.0.1:{self._etcd_port}"
        self._run(
            "etcd",
            "--data-dir", str(self.folder / "etcd"), "--unsafe-no-fsync",
            "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
            "--listen-peer-urls", f"http://127.0.0.1:{free_port()}",
        )  # fmt: skip
        self.go_on()
        self.kubeconfig.write_text(yaml.safe_dump(self._config(TOKEN)))

    def kubeconfig_of(self, user: str) -> Path:
        """The file by which one of the further users comes in."""
        path = self.folder / f"kubeconfig-{user}"
        path.write_text(yaml.safe_dump(self._config(user)))
        return path

    def go_on(self) -> None:
        """Start the API server alone, over an etcd that runs, and wait until it is ready."""
        key, tokens, etcd = self.folder / "sa.key", self.folder / "tokens.csv", f"http://127.0.0.1:{self._etcd_port}"
        self._run(
            "kube-apiserver",
            f"--etcd-servers={etcd}", f"--secure-port={self.port}", "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder / 'certs'}", f"--token-auth-file={tokens}", "--authorization-mode=RBAC",
            f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://tests.invalid", "--disable-admission-plugins=ServiceAccount",
            "--service-cluster-ip-range=10.0.0.0/24", *self._auditing(),
        )  # fmt: skip
        self._wait()

    def _auditing(self) -> tuple[str, ...]:
        if not self._audited:
            return ()
        policy = self.folder / "audit-policy.yaml"
        policy.write_text(_AUDITED)
        return (f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}")

    def pause(self) -> None:
        """End the API server at once, as a machine does that dies; etcd keeps what was written."""
        process = self._processes.pop()
        process.kill()
        process.wait(10)

    def stop(self) -> None:
        """End both."""
        for process in reversed(self._processes):
            process.terminate()
        for process in reversed(self._processes):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

    def kubectl(self, *arguments: str, text: str | None = None, check: bool = False) -> subprocess.CompletedProcess[str]:
        """What kubectl says; `text` is its standard input."""
        command = [binary("kubectl") or "kubectl", "--kubeconfig", str(self.kubeconfig), *arguments]
        return subprocess.run(command, input=text, text=True, capture_output=True, check=check, timeout=60)

    def _run(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            self._processes.append(subprocess.Popen([binary(name) or name, *arguments], stdout=log, stderr=log, cwd=self.folder))

    def _wait(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            try:
                answer = requests.get(
                    f"{self.url}/readyz",
                    headers={"Authorization": f"Bearer {TOKEN}"},
                    verify=str(self.authority),
                    timeout=2,
                )
                if answer.ok:
                    return
            except (requests.RequestException, OSError):
                pass  # not up yet
            time.sleep(0.2)
        said = (self.folder / "kube-apiserver.log").read_text()[-2000:]
        self.stop()
        raise RuntimeError(f"kube-apiserver was not ready within {_START_SECONDS} s: {said}")

    def _config(self, token: str) -> dict[str, object]:
        authority = str(self.authority)
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": {"server": self.url, "certificate-authority": authority}}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "admin"}}],
            "current-context": "tests",
        }


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
