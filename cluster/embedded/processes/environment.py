"""A container's words and environment: `$(NAME)` expansion; values from fields, resources, ConfigMaps and Secrets."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING
from typing import Any

from cluster import objects
from cluster.errors import NotFound
from cluster.kinds import CONFIG_MAP, SECRET, Kind
from cluster.port import Obj, Reader
from cluster.said import said

_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]|\.(?=[a-z0-9])){0,251}([a-z0-9])?")
_REFERENCE = re.compile(r"\$(?:\$|\(([^()$]*)\))")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")
_SHARED_GPUS = "volcano.sh/gpu-index"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ConfigError(Exception):
    """What a pod refers to is not there (yet), or cannot be given to it here. The text says what, and what would do."""


class Refused(ConfigError):
    """What a pod asks for will never be there: waiting does not help."""


@dataclass
class Sources:
    """What pods are given from other objects, and which values must not be shown."""

    reader: Reader
    address: str
    host_address: str
    allocatable: Mapping[str, Any]
    secrets: set[str] = field(default_factory=set)

    def data(self, kind: Kind, pod: Obj, wanted: str, *, optional: bool) -> dict[str, bytes] | None:
        """The data of a ConfigMap or Secret in the pod's namespace; None when it is missing and may be."""
        try:
            obj = self.reader.get(kind, wanted, objects.namespace(pod))
        except NotFound:
            if optional:
                return None
            raise ConfigError(
                said(
                    "%(kind)s %(namespace)s/%(wanted)s is not there",
                    kind=kind.kind,
                    namespace=objects.namespace(pod),
                    wanted=wanted,
                )
            ) from None
        found = data_of(kind, obj)
        if kind == SECRET:
            self.secrets |= {text for value in found.values() if (text := value.decode(errors="replace")).strip()}
        return found


def data_of(kind: Kind, obj: Obj) -> dict[str, bytes]:
    """All keys with their bytes."""
    found = {}
    for key, text in (obj.get("data") or {}).items():
        found[key] = _decoded(key, text) if kind == SECRET else str(text).encode()
    for key, text in (obj.get("stringData") or {}).items():
        found[key] = str(text).encode()
    for key, text in (obj.get("binaryData") or {}).items():
        found[key] = _decoded(key, text)
    return found


def _decoded(key: str, text: Any) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(said("the value of %(key)r is not base64", key=key)) from None


def expand(text: str, values: Mapping[str, str]) -> str:
    """`$(NAME)` becomes the value of a known name and stays as it is for an unknown one; `$$` is a dollar sign."""

    def replaced(found: re.Match[str]) -> str:
        if found.group(0) == "$$":
            return "$"
        return values.get(found.group(1), found.group(0))

    return _REFERENCE.sub(replaced, text)


def environment(pod: Obj, container: Obj, sources: Sources, gpus: str) -> dict[str, str]:
    """A container's environment: what every program needs, then `envFrom`, then `env`; the GPUs that it was given."""
    values = {key: os.environ[key] for key in _INHERITED if key in os.environ}
    values = {"PATH": _PATH, "HOME": os.path.expanduser("~"), "HOSTNAME": host_name(pod)} | values
    given: dict[str, str] = {}
    for entry in container.get("envFrom") or ():
        for kind, reference in ((CONFIG_MAP, entry.get("configMapRef")), (SECRET, entry.get("secretRef"))):
            if reference:
                data = sources.data(kind, pod, reference.get("name", ""), optional=bool(reference.get("optional")))
                given |= {(entry.get("prefix") or "") + key: _text(value) for key, value in (data or {}).items()}
    given = {key: value for key, value in given.items() if _NAME.fullmatch(key)}
    for entry in container.get("env") or ():
        value = _value(pod, container, entry, sources, given)
        if value is not None:
            given[entry["name"]] = value
    return values | given | {"CUDA_VISIBLE_DEVICES": gpus, "NVIDIA_VISIBLE_DEVICES": gpus or "void"}


def _text(value: bytes) -> str:
    """Bytes as a variable can hold them: without what the system cannot pass on."""
    return value.decode(errors="surrogateescape").replace("\0", "")


def _value(pod: Obj, container: Obj, entry: Obj, sources: Sources, given: Mapping[str, str]) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return expand(str(entry.get("value") or ""), given)
    if reference := source.get("fieldRef"):
        return field_value(pod, str(reference.get("fieldPath")), sources)
    if reference := source.get("resourceFieldRef"):
        return resource_value(pod, container, reference, sources)
    for kind, key in ((CONFIG_MAP, "configMapKeyRef"), (SECRET, "secretKeyRef")):
        if reference := source.get(key):
            optional = bool(reference.get("optional"))
            data = sources.data(kind, pod, reference.get("name", ""), optional=optional)
            if data is not None and reference.get("key") in data:
                return _text(data[reference["key"]])
            if not optional:
                raise ConfigError(
                    said(
                        "%(kind)s %(namespace)s/%(name)s has no key %(key)r",
                        kind=kind.kind,
                        namespace=objects.namespace(pod),
                        name=reference.get("name"),
                        key=reference.get("key"),
                    )
                )
            return None
    raise Refused(
        said("env %(name)r: the process runtime knows no source %(source)s", name=entry.get("name"), source=", ".join(source))
    )


def field_value(pod: Obj, path: str, sources: Sources) -> str:
    """What the downward API says of a field of the pod."""
    if keyed := _KEYED.fullmatch(path):
        return str((objects.labels(pod) if keyed[1] == "labels" else objects.annotations(pod)).get(keyed[2], ""))
    spec = pod["spec"]
    values = {
        "metadata.name": objects.name(pod),
        "metadata.namespace": objects.namespace(pod),
        "metadata.uid": objects.uid(pod),
        "metadata.labels": _listed(objects.labels(pod)),
        "metadata.annotations": _listed(objects.annotations(pod)),
        "spec.nodeName": spec.get("nodeName") or "",
        "spec.serviceAccountName": spec.get("serviceAccountName") or "default",
        "status.hostIP": sources.host_address,
        "status.hostIPs": sources.host_address,
        "status.podIP": sources.address,
        "status.podIPs": sources.address,
    }
    if path not in values:
        raise Refused(said("the downward API has no field %(path)r; it has %(values)s", path=path, values=", ".join(values)))
    return str(values[path])


def _listed(texts: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={_quoted(value)}" for key, value in sorted(texts.items()))


def _quoted(text: Any) -> str:
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def resource_value(pod: Obj, container: Obj, reference: Obj, sources: Sources) -> str:
    """An amount in units of the divisor, rounded up; a limit that is not set is what the node has."""
    wanted = str(reference.get("resource") or "")
    of = reference.get("containerName")
    for other in (*(pod["spec"].get("containers") or ()), *(pod["spec"].get("initContainers") or ())):
        container = other if of and other.get("name") == of else container
    part, _, resource = wanted.partition(".")
    if part not in ("limits", "requests") or not resource:
        raise Refused(said("resourceFieldRef: %(wanted)r is neither limits.… nor requests.…", wanted=wanted))
    resources = container.get("resources") or {}
    amount = (resources.get(part) or {}).get(resource)
    if amount is None and part == "requests":
        amount = (resources.get("limits") or {}).get(resource, 0)
    if amount is None:
        amount = sources.allocatable.get(resource, 0)
    divisor = objects.parse_quantity(reference.get("divisor") or "1") or objects.parse_quantity("1")
    return str(int((objects.parse_quantity(amount) / divisor).to_integral_value(ROUND_CEILING)))


def command(container: Obj, values: Mapping[str, str]) -> list[str]:
    """All words of a container's program. Raises Refused when it names none: images are not used here."""
    words = [expand(str(word), values) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]
    if not container.get("command") or not words[0]:
        raise Refused(
            said(
                "container %(name)r has no command, and its image is not used: name the program in `command`",
                name=container.get("name"),
            )
        )
    return words


def label(text: Any, what: str) -> str:
    """A name that may become a file's name. Raises Refused for one that Kubernetes would not take either."""
    if not isinstance(text, str) or not _LABEL.fullmatch(text):
        raise Refused(
            said("%(what)s %(text)r is no name: up to 253 lower-case letters, digits, '-' and '.'", what=what, text=text)
        )
    return text


def host_name(pod: Obj) -> str:
    """What the pod calls itself."""
    return str(pod["spec"].get("hostname") or objects.name(pod))[:63].rstrip("-.")


def gpus_of(pod: Obj) -> dict[str, str]:
    """The GPU indices of each container, by its name: the pod's, dealt out in order by what each asks for.

    Cards that are shared by their memory are seen by all containers.
    """
    held = [index for index in objects.annotations(pod).get(objects.GPU_INDICES, "").split(",") if index]
    shared = objects.annotations(pod).get(_SHARED_GPUS, "")
    found = {}
    for container in pod["spec"].get("containers") or ():
        try:
            count = int(objects.gpu_count(objects.container_requests(container)))
        except ValueError:
            count = 0
        found[container.get("name", "")], held = ",".join(held[:count]) or shared, held[count:]
    return found
