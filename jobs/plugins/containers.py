"""Changes to a pod's containers that plugins share."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.port import Obj


def containers(pod: Obj, *, init: bool) -> Iterator[Obj]:
    """A pod's containers, with `init` its init containers too."""
    for field in ("initContainers", "containers") if init else ("containers",):
        yield from pod["spec"].get(field) or ()


def add_env(container: Obj, *variables: tuple[str, str]) -> None:
    """Append variables; of two with one name the last counts, so that these win."""
    container.setdefault("env", []).extend({"name": name, "value": value} for name, value in variables)


def open_port(container: Obj, name: str, port: int) -> None:
    """Declare a port unless that number is declared already."""
    if all(declared.get("containerPort") != port for declared in container.get("ports") or ()):
        container.setdefault("ports", []).append({"name": name, "containerPort": port})


def mount(pod: Obj, volume: Obj, **where: str) -> None:
    """Add a volume, mounted in every container and init container."""
    pod["spec"].setdefault("volumes", []).append(volume)
    for container in containers(pod, init=True):
        container.setdefault("volumeMounts", []).append({"name": volume["name"], **where})
