"""The ssh plugin: pods of a job reach each other by ssh without a password, with a key pair that only they have."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from cluster import objects
from cluster.disclosure import HIDDEN
from cluster.errors import FieldError
from cluster.kinds import SECRET, Kind
from cluster.port import Obj
from cluster.said import said
from jobs.plugins.base import Plugin
from jobs.plugins.containers import mount
from jobs.plugins.flags import HIGHEST_PORT, Flag
from jobs.plugins.hosts import hosts
from jobs.plugins.maker import Maker

HOME = "/root/.ssh"
_FOLDER = ".ssh"
PRIVATE_KEY, PUBLIC_KEY, AUTHORIZED_KEYS, CONFIG = "id_rsa", "id_rsa.pub", "authorized_keys", "config"
FILES = (PRIVATE_KEY, PUBLIC_KEY, AUTHORIZED_KEYS, CONFIG)
PORT = 22
_BITS = 2048
_OWNER_ONLY, _FOR_ALL = 0o600, 0o644


class Ssh(Plugin):
    """A Secret with keys and client configuration, made once a job and mounted where ssh looks for them."""

    name = "ssh"
    flags = (
        Flag("ssh-key-file-path", HOME),
        Flag("ssh-private-key", "", is_secret=True),
        Flag("ssh-public-key", ""),
        Flag("ssh-port", PORT),
    )

    def on_job_add(self, maker: Maker, job: Obj) -> None:
        """The Secret. Keys that are there stay; only the list of hosts is brought up to date."""
        name, config = secret_name(objects.name(job)), _encoded(client_config(job, self._port))
        own = maker.find(SECRET, name)
        if own is None:
            private, public = self._keys()
            files = {PRIVATE_KEY: private, PUBLIC_KEY: public, AUTHORIZED_KEYS: public}
            maker.create(SECRET, name, {"type": "Opaque", "data": {**{k: _encoded(v) for k, v in files.items()}, CONFIG: config}})
        else:
            maker.keep(SECRET, name, {"data": {**(own.get("data") or {}), CONFIG: config}})

    def makes(self, job: str) -> Iterator[tuple[Kind, str]]:
        """The keys."""
        yield SECRET, secret_name(job)

    def on_pod_create(self, pod: Obj, job: Obj) -> None:
        """Mount the files; ssh itself wants them to be its user's alone, others than root must be let read them."""
        name, path = secret_name(objects.name(job)), self.arguments.text("ssh-key-file-path")
        secret = {
            "secretName": name,
            "items": [{"key": file, "path": f"{_FOLDER}/{file}"} for file in FILES],
            "defaultMode": _OWNER_ONLY if path == HOME else _FOR_ALL,
        }
        mount(pod, {"name": name, "secret": secret}, mountPath=path, subPath=_FOLDER)

    def check(self, spec: dict[str, Any], name: str) -> Iterator[FieldError]:
        """A manifest that was shown has no keys in it any more."""
        if self.arguments.text("ssh-private-key") == HIDDEN:
            yield FieldError(self.at(), said("the private key was hidden when this was shown: give it again, or none"), "hidden")

    @property
    def _port(self) -> int:
        port = self.arguments.whole("ssh-port")
        return port if 0 < port <= HIGHEST_PORT else PORT

    def _keys(self) -> tuple[str, str]:
        """Private and public key: as given when the private one is, else new ones."""
        given = self.arguments.text("ssh-private-key")
        return (given, self.arguments.text("ssh-public-key")) if given else new_keys()


def secret_name(job: str) -> str:
    """The Secret with a job's keys."""
    return f"{job}-ssh"


def new_keys() -> tuple[str, str]:
    """A new RSA pair: the private key as PKCS#1 PEM, the public one as a line of `authorized_keys`."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode() + "\n"


def client_config(job: Obj, port: int) -> str:
    """What `ssh` reads: no questions about host keys, which are new with each pod, and every pod by its short name."""
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    for task in job["spec"]["tasks"]:
        for short, subdomain in hosts(objects.name(job), task):
            lines += [f"Host {short}", f"  HostName {short}.{subdomain}", f"  Port {port}"]
    return "\n".join(lines) + "\n"


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
