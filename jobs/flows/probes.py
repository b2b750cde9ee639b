"""Asking the pods of a job whether they are ready for what depends on them.

A probe about a task holds when as many of its pods answer as the task's gang minimum, one at least.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
from collections.abc import Callable, Iterable
from typing import Protocol

from cluster.port import Obj
from jobs.roles import is_ready, minimum_of, phase_of, role_of, tasks_of

SECONDS = 1.0
"""How long a pod may take to answer."""
AGAIN = 2.0
"""Seconds until pods are asked again."""


class Prober(Protocol):
    """Asks one pod."""

    def http(self, pod: Obj, port: int, path: str, header: tuple[str, str] | None) -> bool:
        """Whether a GET is answered with a status from 200 to 399."""
        ...

    def tcp(self, pod: Obj, port: int) -> bool:
        """Whether a connection is taken."""
        ...


class NetworkProber:
    """Asks over the network, by the pod's address."""

    def http(self, pod: Obj, port: int, path: str, header: tuple[str, str] | None) -> bool:
        address = _address(pod)
        if not address:
            return False
        connection = http.client.HTTPConnection(address, port, timeout=SECONDS)
        try:
            connection.request("GET", path or "/", headers=dict([header]) if header else {})
            return 200 <= connection.getresponse().status < 400
        except (OSError, http.client.HTTPException, ValueError):
            return False
        finally:
            connection.close()

    def tcp(self, pod: Obj, port: int) -> bool:
        address = _address(pod)
        if not address:
            return False
        try:
            with socket.create_connection((address, port), timeout=SECONDS):
                return True
        except OSError:
            return False


class EmbeddedProber:
    """For the embedded cluster: pods that are processes of this machine are asked; simulated ones, whose addresses lead
    nowhere, answer when they are ready."""

    def __init__(self) -> None:
        self._network = NetworkProber()

    def http(self, pod: Obj, port: int, path: str, header: tuple[str, str] | None) -> bool:
        return self._network.http(pod, port, path, header) if _is_local(pod) else is_ready(pod)

    def tcp(self, pod: Obj, port: int) -> bool:
        return self._network.tcp(pod, port) if _is_local(pod) else is_ready(pod)


def holds(probe: Obj, job: Obj, pods: Iterable[Obj], prober: Prober) -> bool:
    """Whether every question of a probe that is about tasks of this job is answered; a question without a task is about all."""
    known, found = {task["name"]: task for task in tasks_of(job)}, list(pods)

    def answered(question: Obj, ask: Callable[[Obj], bool]) -> bool:
        named = question.get("taskName")
        asked = [known[named]] if named in known else [] if named else list(known.values())
        return all(_enough(task, [pod for pod in found if role_of(pod) == task["name"]], ask) for task in asked)

    return (
        all(answered(q, lambda pod, q=q: _in_phase(pod, q["phase"])) for q in probe.get("taskStatusList") or ())
        and all(answered(q, lambda pod, q=q: _runs(pod) and prober.tcp(pod, q["port"])) for q in probe.get("tcpSocketList") or ())
        and all(answered(q, lambda pod, q=q: _runs(pod) and _get(pod, q, prober)) for q in probe.get("httpGetList") or ())
    )


def _enough(task: Obj, pods: list[Obj], ask: Callable[[Obj], bool]) -> bool:
    """Whether enough pods answer; nobody is asked any more once that is clear."""
    wanted, left = max(minimum_of(task), 1), len(pods)
    for pod in pods:
        if wanted <= 0 or left < wanted:
            break
        wanted, left = wanted - ask(pod), left - 1
    return wanted <= 0


def _in_phase(pod: Obj, phase: str) -> bool:
    """Whether a pod is in a phase; one that has ended well was running."""
    return phase_of(pod) == phase or (phase == "Running" and phase_of(pod) == "Succeeded")


def _runs(pod: Obj) -> bool:
    return phase_of(pod) == "Running"


def _get(pod: Obj, question: Obj, prober: Prober) -> bool:
    header = question.get("httpHeader") or {}
    pair = (str(header["name"]), str(header.get("value") or "")) if header.get("name") else None
    return prober.http(pod, question["port"], question.get("path") or "/", pair)


def _address(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("podIP") or "")


def _is_local(pod: Obj) -> bool:
    try:
        return ipaddress.ip_address(_address(pod)).is_loopback
    except ValueError:
        return False
