"""A pod's volumes as folders of this machine, and where each container sees them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.embedded.processes.environment import ConfigError, Refused, Sources, expand, field_value, label, resource_value
from cluster.kinds import CONFIG_MAP, SECRET, Kind
from cluster.objects import namespace
from cluster.port import Obj
from cluster.said import said

_USUAL_MODE = 0o644
_FILES = ("configMap", "secret", "downwardAPI", "projected")


@dataclass(frozen=True, slots=True)
class File:
    """One file of a volume: its path in it, its bytes and its mode."""

    path: str
    content: bytes
    mode: int


class Volumes:
    """The volumes of one pod below `folder`; claims, which outlive pods, below `claims`.

    `allowed` are the folders of this machine that pods may mount by hostPath.
    """

    def __init__(self, pod: Obj, folder: Path, claims: Path, allowed: Iterable[str]) -> None:
        self._pod, self._folder, self._claims = pod, folder, claims
        self._allowed = [os.path.realpath(path) for path in allowed]
        self._places: dict[str, str] = {}

    def make(self, sources: Sources) -> None:
        """Make them all, or bring files up to date. Raises ConfigError."""
        for volume in self._pod["spec"].get("volumes") or ():
            self._places[volume["name"]] = self._made(volume, sources)

    def mounts(self, container: Obj, values: dict[str, str]) -> list[dict[str, Any]]:
        """What a container mounts where, for its supervisor. Raises ConfigError."""
        found = []
        for mount in container.get("volumeMounts") or ():
            place = self._places.get(mount.get("name"))
            if place is None:
                raise Refused(said("volumeMounts: the pod has no volume %(name)r", name=mount.get("name")))
            path = os.path.normpath(str(mount["mountPath"]))
            if not path.startswith("/") or path == "/":
                raise Refused(said("mountPath %(path)r is no absolute path below the root", path=mount["mountPath"]))
            inner = expand(mount["subPathExpr"], values) if mount.get("subPathExpr") else mount.get("subPath") or ""
            source = self._inside(place, inner)
            files = any(
                kind in volume for volume in self._pod["spec"]["volumes"] if volume["name"] == mount["name"] for kind in _FILES
            )
            found.append({"source": source, "path": path, "readOnly": bool(mount.get("readOnly")) or files})
        return found

    def uses(self, kind: Kind, wanted: str) -> bool:
        """Whether files of a volume come from this ConfigMap or Secret."""
        return any((kind, wanted) in list(_origins(volume)) for volume in self._pod["spec"].get("volumes") or ())

    def _made(self, volume: Obj, sources: Sources) -> str:
        place = self._folder / label(volume.get("name"), "volume")
        if any(kind in volume for kind in _FILES):
            _write(place, self._files(volume, sources))
        elif "emptyDir" in volume:
            place.mkdir(parents=True, exist_ok=True)
            place.chmod(0o777)
        elif "hostPath" in volume:
            return self._host_path(volume["hostPath"])
        elif claim := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            place = self._claims / label(namespace(self._pod), "namespace") / label(claim, "claim")
            place.mkdir(parents=True, exist_ok=True)
            place.chmod(0o777)
        else:
            kinds = ", ".join(sorted(set(volume) - {"name"}))
            raise Refused(
                said(
                    "volume %(name)r: the process runtime has no %(kinds)s",
                    name=volume.get("name"),
                    kinds=kinds or said("volume without a kind"),
                )
            )
        return str(place)

    def _files(self, volume: Obj, sources: Sources) -> list[File]:
        if "projected" in volume:
            mode = volume["projected"].get("defaultMode")
            return [
                file
                for part in volume["projected"].get("sources") or ()
                for kind, body in part.items()
                for file in self._of(kind, body, mode, sources)
            ]
        kind = next(kind for kind in _FILES if kind in volume)
        return self._of(kind, volume[kind] or {}, volume[kind].get("defaultMode"), sources)

    def _of(self, kind: str, body: Obj, mode: int | None, sources: Sources) -> list[File]:
        usual = _USUAL_MODE if mode is None else int(mode)
        if kind == "downwardAPI":
            return [self._downward(item, usual, sources) for item in body.get("items") or ()]
        if kind not in ("configMap", "secret"):
            return []  # a token of a service account: there is none here
        wanted = str(body.get("secretName") or body.get("name") or "")
        optional = bool(body.get("optional"))
        data = sources.data(SECRET if kind == "secret" else CONFIG_MAP, self._pod, wanted, optional=optional)
        if data is None:
            return []
        if not body.get("items"):
            return [File(key, content, usual) for key, content in data.items()]
        found = []
        for item in body["items"]:
            if item.get("key") in data:
                found.append(File(_inner(item.get("path")), data[item["key"]], _mode(item, usual)))
            elif not optional:
                raise ConfigError(said("%(kind)s %(wanted)r has no key %(key)r", kind=kind, wanted=wanted, key=item.get("key")))
        return found

    def _downward(self, item: Obj, usual: int, sources: Sources) -> File:
        if reference := item.get("fieldRef"):
            text = field_value(self._pod, str(reference.get("fieldPath")), sources)
        else:
            text = resource_value(self._pod, {}, item.get("resourceFieldRef") or {}, sources)
        return File(_inner(item.get("path")), text.encode(), _mode(item, usual))

    def _host_path(self, body: Obj) -> str:
        path = os.path.realpath(str(body.get("path")))
        if not any(path == root or path.startswith(root.rstrip("/") + "/") for root in self._allowed):
            raise Refused(
                said(
                    "hostPath %(path)r is not allowed here: name it, or a folder above it, in BASALT_HOST_PATHS",
                    path=body.get("path"),
                )
            )
        kind = body.get("type") or ""
        if kind == "DirectoryOrCreate":
            os.makedirs(path, exist_ok=True)
        elif kind == "FileOrCreate" and not os.path.exists(path):
            Path(path).touch()
        if not os.path.exists(path):
            raise ConfigError(said("hostPath %(path)r does not exist", path=path))
        if (kind == "Directory" and not os.path.isdir(path)) or (kind == "File" and not os.path.isfile(path)):
            raise ConfigError(said("hostPath %(path)r is no %(kind)s", path=path, kind=kind))
        return path

    @staticmethod
    def _inside(place: str, inner: str) -> str:
        """A path below a volume, also when links would lead out of it. Made when it is missing."""
        if not inner:
            return place
        root = os.path.realpath(place)
        source = os.path.realpath(os.path.join(root, _inner(inner)))
        if source != root and not source.startswith(root + "/"):
            raise Refused(said("subPath %(inner)r leads out of its volume", inner=inner))
        if not os.path.exists(source):
            os.makedirs(source)
        return source


def _origins(volume: Obj) -> Iterable[tuple[Kind, str]]:
    parts = [volume, *((volume.get("projected") or {}).get("sources") or ())]
    for part in parts:
        if part.get("configMap"):
            yield CONFIG_MAP, str(part["configMap"].get("name"))
        if part.get("secret"):
            yield SECRET, str(part["secret"].get("secretName") or part["secret"].get("name"))


def _mode(item: Obj, usual: int) -> int:
    return usual if item.get("mode") is None else int(item["mode"])


def _inner(path: Any) -> str:
    """A path that stays below where it begins. Raises ConfigError."""
    text = os.path.normpath(str(path))
    if text.startswith(("/", "..")) or text == ".":
        raise Refused(said("the path %(path)r of a file in a volume leads out of it", path=path))
    return text


def _write(place: Path, files: list[File]) -> None:
    """Make a folder hold exactly these files; each changes as a whole."""
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o755)
    wanted = {_inner(file.path): file for file in files}
    for path, file in wanted.items():
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_file() and target.read_bytes() == file.content and target.stat().st_mode & 0o777 == file.mode:
            continue
        new = target.with_name(f".{target.name}.new")
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as written:
            written.write(file.content)
        new.chmod(file.mode)
        new.replace(target)
    for found in sorted(place.rglob("*"), reverse=True):
        inner = str(found.relative_to(place))
        if inner not in wanted and not any(path.startswith(f"{inner}/") for path in wanted):
            shutil.rmtree(found, ignore_errors=True) if found.is_dir() else found.unlink(missing_ok=True)
