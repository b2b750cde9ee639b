"""Fields of the submit form whose values are lists and maps: a line an entry, each written as people write it.

What a line cannot say (a variable from a Secret, a volume of another kind) is not shown and stays as it is.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any

from jobs.submit.draft import Draft, Path
from jobs.submit.fields import GPU_PRODUCT, Container, Field, ensure_container

SHM = "/dev/shm"  # noqa: S108 — where containers have their shared memory
_AMOUNT = re.compile(r"\+\s*([0-9.]+[A-Za-z]{0,2})")


class Lines(Field, ABC):
    """A list of mappings, a line each. Lines that stay keep their entry with all that it has; others come and go."""

    @abstractmethod
    def line(self, entry: Any) -> str | None:
        """An entry as a line; None for what no line can say."""

    @abstractmethod
    def entry(self, line: str) -> dict[str, Any]:
        """The entry that a line means."""

    def key(self, line: str) -> str:
        """What makes two lines speak of the same entry."""
        return line

    def changes(self, line: str) -> dict[str, Any]:
        """What a line changes in an entry of the same key."""
        return self.entry(line)

    def read(self, draft: Draft, scope: Path) -> str:
        return "\n".join(line for _index, line in self._lines(draft, scope))

    def _lines(self, draft: Draft, scope: Path) -> list[tuple[int, str]]:
        entries = draft.get(self.at(draft, scope))
        lines = [(index, self.line(entry)) for index, entry in enumerate(entries if isinstance(entries, list) else ())]
        return [(index, line) for index, line in lines if line is not None]

    def write(self, draft: Draft, scope: Path, text: str) -> None:
        where = self.at(draft, scope)
        wanted = [line.strip() for line in text.split("\n") if line.strip()]
        gone = []
        for index, line in self._lines(draft, scope):
            if line in wanted:
                wanted.remove(line)
                continue
            twin = next((other for other in wanted if self.key(other) == self.key(line)), None)
            if twin is None:
                gone.append(index)
                continue
            wanted.remove(twin)
            for field, value in self.changes(twin).items():
                draft.set((*where, index, field), value)
        for index in reversed(gone):
            draft.remove((*where, index))
        for line in wanted:
            self.prepare(draft, scope)
            draft.append(where, self.entry(line))

    def prepare(self, draft: Draft, scope: Path) -> None:
        """Make what the list stands in."""


class Environment(Lines):
    """Variables of the first container with a plain value: `NAME=value`."""

    def __init__(self) -> None:
        super().__init__("env", "template", "spec", "containers", 0, "env")

    def line(self, entry: Any) -> str | None:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or set(entry) - {"name", "value"}:
            return None
        value = entry.get("value", "")
        if not isinstance(value, str) or "\n" in value or value != value.strip() or entry["name"] != entry["name"].strip():
            return None
        return None if "=" in entry["name"] or "\n" in entry["name"] else f"{entry['name']}={value}"

    def entry(self, line: str) -> dict[str, Any]:
        name, _sign, value = line.partition("=")
        return {"name": name.strip(), "value": value.strip()}

    def key(self, line: str) -> str:
        return line.partition("=")[0].strip()

    def changes(self, line: str) -> dict[str, Any]:
        return {"value": self.entry(line)["value"]}

    def prepare(self, draft: Draft, scope: Path) -> None:
        ensure_container(draft, scope)


class Tolerations(Lines):
    """Taints that the pods put up with, as kubectl writes taints: `key=value:Effect`, `key:Effect`, `key`."""

    _LINE = re.compile(r"([^=:\s]+)(?:=([^=:\s]*))?(?::([A-Za-z]+))?")

    def __init__(self) -> None:
        super().__init__("tolerations", "template", "spec", "tolerations")

    def line(self, entry: Any) -> str | None:
        if not isinstance(entry, dict) or set(entry) - {"key", "operator", "value", "effect"}:
            return None
        key, value, effect = entry.get("key"), entry.get("value", ""), entry.get("effect", "")
        operator = entry.get("operator", "Equal")
        if not all(isinstance(each, str) for each in (key, value, effect)) or not key:
            return None
        text = f"{key}={value}" if operator == "Equal" else key if operator == "Exists" and not value else ""
        text = f"{text}:{effect}" if effect else text
        return (
            text
            if text and self.entry(text) == {**dict(entry), **({} if "operator" in entry else {"operator": "Equal"})}
            else None
        )

    def entry(self, line: str) -> dict[str, Any]:
        found = self._LINE.fullmatch(line)
        if found is None:
            return {"key": line, "operator": "Exists"}  # the rules say what is wrong with such a key
        key, value, effect = found.groups()
        made = {"key": key, "operator": "Exists"} if value is None else {"key": key, "operator": "Equal", "value": value}
        return made | ({"effect": effect} if effect else {})


class Volumes(Lines):
    """Volumes of the job: `claim:/path` for a claim that there is, `+10Gi:/path` for a new one of this size."""

    def __init__(self) -> None:
        super().__init__("volumes", "spec", "volumes")

    def line(self, entry: Any) -> str | None:
        if not isinstance(entry, dict):
            return None
        path = entry.get("mountPath")
        if not isinstance(path, str) or ":" in path or path != path.strip() or "\n" in path:
            return None
        if set(entry) == {"mountPath", "volumeClaimName"} and isinstance(entry["volumeClaimName"], str):
            line = f"{entry['volumeClaimName']}:{path}"
            return line if self.entry(line) == dict(entry) else None
        claim = entry.get("volumeClaim")
        size = claim.get("resources", {}).get("requests", {}).get("storage") if _is_plain_claim(claim) else None
        line = f"+{size}:{path}"
        return line if size is not None and set(entry) == {"mountPath", "volumeClaim"} and self.entry(line) == entry else None

    def entry(self, line: str) -> dict[str, Any]:
        what, _sign, path = line.rpartition(":")
        if size := _AMOUNT.fullmatch(what.strip()):
            claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size[1]}}}
            return {"mountPath": path.strip(), "volumeClaim": claim}
        return {"mountPath": path.strip(), "volumeClaimName": what.strip()}


def _is_plain_claim(claim: Any) -> bool:
    if not isinstance(claim, dict) or set(claim) != {"accessModes", "resources"}:
        return False
    resources = claim["resources"]
    return isinstance(resources, dict) and isinstance(resources.get("requests"), dict)


class Selector(Field):
    """Labels that a node must have, `key=value` a line; the GPU model has an input of its own."""

    def __init__(self) -> None:
        super().__init__("selector", "template", "spec", "nodeSelector")

    def _known(self, draft: Draft, scope: Path) -> dict[str, str]:
        labels = draft.get(self.at(draft, scope))
        return {
            key: value
            for key, value in (labels.items() if isinstance(labels, dict) else ())
            if isinstance(key, str) and isinstance(value, str) and key != GPU_PRODUCT and _fits_line(key) and _fits_line(value)
        }

    def read(self, draft: Draft, scope: Path) -> str:
        return "\n".join(f"{key}={value}" for key, value in self._known(draft, scope).items())

    def write(self, draft: Draft, scope: Path, text: str) -> None:
        where = self.at(draft, scope)
        lines = (line.partition("=") for line in text.split("\n") if line.strip())
        wanted = {key.strip(): value.strip() for key, _sign, value in lines}
        for key in self._known(draft, scope).keys() - wanted.keys():
            draft.remove((*where, key))
        for key, value in wanted.items():
            draft.set((*where, key), value)


def _fits_line(text: str) -> bool:
    return text == text.strip() and "=" not in text and "\n" not in text


class DependsOn(Field):
    """Tasks that have to come first, by name."""

    def __init__(self) -> None:
        super().__init__("depends_on", "dependsOn", "name")

    def show(self, value: Any) -> str:
        names = value if isinstance(value, list) else ()
        is_plain = names and all(isinstance(name, str) and re.fullmatch(r"[^\s,]+", name) for name in names)
        return ", ".join(names) if is_plain else ""

    def value(self, text: str) -> Any:
        return [name for name in re.split(r"[\s,]+", text) if name]


class SharedMemory(Container):
    """The size of the memory-backed volume at /dev/shm of the first container."""

    def __init__(self) -> None:
        super().__init__("shared_memory")

    def at(self, draft: Draft, scope: Path) -> Path:
        found = self._volume(draft, scope)
        if found is None:
            return (*scope, "template", "spec", "volumes")
        return (*scope, "template", "spec", "volumes", found, "emptyDir", "sizeLimit")

    def _volume(self, draft: Draft, scope: Path) -> int | None:
        mount = self._mount(draft, scope)
        name = draft.get((*self._mounts(scope), mount, "name")) if mount is not None else None
        volumes = draft.get((*scope, "template", "spec", "volumes"))
        for index, each in enumerate(volumes if isinstance(volumes, list) else ()):
            made = each.get("emptyDir") if isinstance(each, dict) and each.get("name") == name else None
            if isinstance(made, dict) and made.get("medium") == "Memory":
                return index
        return None

    def _mounts(self, scope: Path) -> Path:
        return (*scope, "template", "spec", "containers", 0, "volumeMounts")

    def _mount(self, draft: Draft, scope: Path) -> int | None:
        mounts = draft.get(self._mounts(scope))
        paths = [
            each.get("mountPath") if isinstance(each, dict) else None for each in (mounts if isinstance(mounts, list) else ())
        ]
        return paths.index(SHM) if SHM in paths else None

    def read(self, draft: Draft, scope: Path) -> str:
        if self._volume(draft, scope) is None:
            return ""
        value = draft.get(self.at(draft, scope))
        return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""

    def write(self, draft: Draft, scope: Path, text: str) -> None:
        found, volumes = self._volume(draft, scope), (*scope, "template", "spec", "volumes")
        if found is not None and text:
            draft.set(self.at(draft, scope), text)
        elif found is not None:
            draft.remove((*self._mounts(scope), self._mount(draft, scope) or 0))
            draft.remove((*volumes, found))
        elif text:
            ensure_container(draft, scope)
            draft.append(volumes, {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": text}})
            draft.append(self._mounts(scope), {"name": "shm", "mountPath": SHM})


JOB_LISTS: tuple[Field, ...] = (Volumes(),)
TASK_LISTS: tuple[Field, ...] = (Environment(), Selector(), Tolerations(), DependsOn(), SharedMemory())
