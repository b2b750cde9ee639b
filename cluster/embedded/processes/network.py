"""Loopback addresses of pods, and the names by which pods find each other: what a cluster's DNS would say, as /etc/hosts."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from cluster.embedded.processes.environment import host_name
from cluster.objects import labels, name, namespace
from cluster.port import Obj

_DOMAIN = "svc.cluster.local"
_FIRST, _LAST = 16, 254
_SIZE = 65_024


class Addresses:
    """Addresses 127.x.y.z, one a pod; all of 127/8 is this machine. `run` names a data folder: two do not share an x."""

    def __init__(self, run: str) -> None:
        self._network = _FIRST + zlib.crc32(run.encode()) % (_LAST - _FIRST)
        self._of: dict[str, str] = {}
        self._used: set[str] = set()
        self._next = 0

    def keep(self, pod_uid: str, address: str) -> None:
        """A pod has this address already, from an earlier run."""
        if address and address not in self._used:
            self._of[pod_uid] = address
            self._used.add(address)

    def of(self, pod_uid: str) -> str:
        """The pod's address; one that nobody has, when it has none. Raises LookupError when all are taken."""
        if pod_uid in self._of:
            return self._of[pod_uid]
        for _ in range(_SIZE):
            number, self._next = self._next, (self._next + 1) % _SIZE
            address = f"127.{self._network}.{number // 254}.{number % 254 + 1}"
            if address not in self._used:
                self.keep(pod_uid, address)
                return address
        raise LookupError("all loopback addresses are taken")

    def drop(self, pod_uid: str) -> None:
        """The pod is gone."""
        self._used.discard(self._of.pop(pod_uid, ""))


def names(space: str, pods: Iterable[tuple[Obj, str]], services: Iterable[Obj]) -> str:
    """Lines of /etc/hosts for the pods of one namespace: pods by host name and subdomain, Services by what they select.

    A Service's own name leads to its pods themselves: there is no virtual address between them.
    """
    here = [(pod, address) for pod, address in pods if namespace(pod) == space and address]
    by_service: defaultdict[str, list[str]] = defaultdict(list)
    known = {name(service): service for service in services if namespace(service) == space}
    lines = []
    for pod, address in here:
        domain = pod["spec"].get("subdomain") or ""
        if str(domain) in known and pod["spec"].get("hostname"):
            lines.append(f"{address}\t{_forms(f'{host_name(pod)}.{domain}', space)}\n")
    for service in known.values():
        selector = (service.get("spec") or {}).get("selector") or {}
        if selector:
            for pod, address in here:
                if all(labels(pod).get(key) == value for key, value in selector.items()):
                    by_service[name(service)].append(address)
    for service_name, addresses in sorted(by_service.items()):
        lines += [f"{address}\t{_forms(service_name, space)}\n" for address in addresses]
    return "".join(lines)


def _forms(short: str, space: str) -> str:
    full = f"{short}.{space}.{_DOMAIN}"
    return f"{full} {short}.{space}.svc {short}.{space} {short}"


def hosts(pod: Obj, address: str, others: str) -> str:
    """The whole /etc/hosts of a pod."""
    own, space, domain = host_name(pod), namespace(pod), pod["spec"].get("subdomain")
    full = f"{own}.{domain}.{space}.{_DOMAIN} " if domain else ""
    lines = ["# Written by Basalt, and kept up to date.\n", "127.0.0.1\tlocalhost\n", "::1\tlocalhost ip6-localhost\n"]
    lines.append(f"{address}\t{full}{own}\n")
    aliases = pod["spec"].get("hostAliases") or ()
    lines += [f"{alias.get('ip')}\t{' '.join(map(str, alias.get('hostnames') or ()))}\n" for alias in aliases]
    return "".join(lines) + others


def write(path: Path, text: str) -> None:
    """Write in place: the file is mounted in pods, which would not see another one of its name."""
    data = text.encode()
    if path.exists() and path.read_bytes() == data:
        return
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(data)
        file.truncate()
    path.chmod(0o644)
