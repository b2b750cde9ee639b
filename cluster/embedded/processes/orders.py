"""What a supervisor is told: the plan of a pod, and the order to start a container of it."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING, Any

from cluster.embedded.processes import environment
from cluster.embedded.processes.environment import ConfigError, Refused, Sources
from cluster.embedded.processes.leftovers import MARK
from cluster.embedded.processes.status import ContainerLife
from cluster.embedded.processes.volumes import Volumes
from cluster.embedded.processes.warden import Abilities
from cluster.kinds import SECRET, Kind
from cluster.objects import to_units
from cluster.port import Obj, Reader
from cluster.said import said

if TYPE_CHECKING:
    from cluster.embedded.processes.kubelet import Settings
    from cluster.embedded.processes.lives import PodLife

_WORK = "/run/basalt"
_MESSAGE_PATH = "/dev/termination-log"


class Orders:
    """Over one cluster and one data folder."""

    def __init__(self, reader: Reader, settings: Settings, abilities: Abilities) -> None:
        self._reader, self._settings, self._abilities = reader, settings, abilities
        self._data = settings.data.resolve()
        self._volumes: dict[str, Volumes] = {}
        self._nodes: dict[str, Obj] = {}

    def take_node(self, node: Obj, *, gone: bool) -> None:
        """Follow what nodes have: a container without limits is told these."""
        name = node["metadata"]["name"]
        self._nodes.pop(name, None) if gone else self._nodes.update({name: (node.get("status") or {}).get("allocatable") or {}})

    def forget(self, life: PodLife) -> None:
        """The pod is gone."""
        self._volumes.pop(life.uid, None)

    def plan(self, life: PodLife) -> dict[str, Any]:
        """What a supervisor begins with; the pod's volumes are made. Raises ConfigError."""
        folder = self._data / "pods" / life.uid
        volumes = Volumes(life.pod, folder / "volumes", self._data / "claims", self._settings.host_paths)
        volumes.make(self._sources(life))
        self._volumes[life.uid] = volumes
        return {
            "uid": life.uid,
            "folder": str(folder),
            "host": environment.host_name(life.pod),
            "hidden": [str(self._data)],
            "logs": str(self._data / "logs" / life.uid),
            "logBytes": self._settings.log_bytes,
        }

    def refresh(self, life: PodLife, kind: Kind, name: str) -> None:
        """A ConfigMap or Secret changed: the files that come from it follow, and its new values are masked before."""
        volumes, sources = self._volumes.get(life.uid), self._sources(life)
        if volumes is None or life.over or not volumes.uses(kind, name):
            return
        with contextlib.suppress(ConfigError):  # it went, or a key did: what is mounted stays as it was
            if kind == SECRET:
                sources.data(kind, life.pod, name, optional=True)
            if life.line is not None and sources.secrets:
                life.line.say({"do": "mask", "secrets": sorted(sources.secrets)})
            volumes.make(sources)

    def start(self, life: PodLife, container: ContainerLife) -> dict[str, Any]:
        """The order to start a container. Raises ConfigError."""
        pod, spec, sources = life.pod, container.spec, self._sources(life)
        environment.label(container.name, "container")
        self._volumes[life.uid].make(sources)
        values = environment.environment(pod, spec, sources, environment.gpus_of(pod).get(container.name, ""))
        for other in (*(pod["spec"].get("initContainers") or ()), *(pod["spec"].get("containers") or ())):
            with contextlib.suppress(ConfigError):  # for its secrets alone: one container may print what another was given
                environment.environment(pod, other, sources, "")
        values[MARK] = f"{self._settings.run}/{life.uid}"
        folder = self._data / "pods" / life.uid
        work, message = folder / "work" / container.name, folder / f"message-{container.name}"
        work.mkdir(parents=True, exist_ok=True)
        message.touch()
        mounts = self._volumes[life.uid].mounts(spec, values)
        moved = self._abilities.mounts
        if moved:
            mounts.append({"source": str(work), "path": f"{_WORK}/{container.name}", "readOnly": False})
            mounts.append(
                {"source": str(message), "path": spec.get("terminationMessagePath") or _MESSAGE_PATH, "readOnly": False}
            )
        else:
            values["BASALT_VOLUMES"] = str(folder / "volumes")
            values["TERMINATION_LOG"] = str(message)
        user, group, groups = _identity(pod, spec)
        if user is not None and self._abilities.root:
            for path in (work, message):
                os.chown(path, user, -1 if group is None else group)
        home = f"{_WORK}/{container.name}" if moved else str(work)
        return {
            "name": container.name,
            "attempt": container.restarts,
            "command": environment.command(spec, values),
            "env": values,
            "secrets": sorted(sources.secrets, key=len, reverse=True),
            "cwd": spec.get("workingDir") or home,
            "mounts": mounts,
            "limits": self._limits(spec),
            "user": user,
            "group": group,
            "groups": groups,
            "stopSignal": _stop_signal(spec),
            "messageFile": str(message),
            "messagePolicy": spec.get("terminationMessagePolicy") or "File",
        }

    def _sources(self, life: PodLife) -> Sources:
        allocatable = self._nodes.get(life.pod["spec"].get("nodeName", ""), {})
        return Sources(self._reader, life.address, "127.0.0.1", allocatable)

    def _limits(self, spec: Obj) -> dict[str, int]:
        resources = spec.get("resources") or {}
        limits, asked = resources.get("limits") or {}, resources.get("requests") or {}
        return {
            "memory": _units("memory", limits),
            "cpu": _units("cpu", limits),
            "shares": _units("cpu", asked) or _units("cpu", limits),
            "pids": self._settings.pids,
        }


def _units(resource: str, amounts: Obj) -> int:
    try:
        return to_units(resource, amounts.get(resource) or 0)
    except ValueError as error:
        raise Refused(said("resources: %(resource)s: %(error)s", resource=resource, error=error)) from None


def _identity(pod: Obj, spec: Obj) -> tuple[int | None, int | None, list[int]]:
    """User, group and further groups by the security contexts. Raises Refused where root is forbidden and nobody is named."""
    of_pod = pod["spec"].get("securityContext") or {}
    context = of_pod | {key: value for key, value in (spec.get("securityContext") or {}).items() if value is not None}
    user, group = context.get("runAsUser"), context.get("runAsGroup")
    if context.get("runAsNonRoot") and user in (None, 0) and os.geteuid() == 0:
        raise Refused(said("runAsNonRoot: Basalt runs as root here, so name a user by its number in runAsUser"))
    groups = [int(number) for number in of_pod.get("supplementalGroups") or ()]
    if of_pod.get("fsGroup") is not None:
        groups.append(int(of_pod["fsGroup"]))
    return None if user is None else int(user), None if group is None else int(group), groups


def _stop_signal(spec: Obj) -> str:
    name = str((spec.get("lifecycle") or {}).get("stopSignal") or "SIGTERM")
    if name not in signal.Signals.__members__:
        raise Refused(said("lifecycle.stopSignal: there is no signal %(name)r", name=name))
    return name
