"""The logs of process pods on disk: `<uid>/<container>/<attempt>/<number>.log`, and what the pod was in `<uid>/pod.json`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.logs.records import Record
from cluster.logs.streams import START, FileStream
from cluster.objects import name, namespace
from cluster.objects import uid as uid_of
from cluster.port import Obj

_POLL = 0.3
_CHUNK = 1 << 20
ENDED = "ended"


@dataclass(frozen=True, slots=True)
class LogStore:
    """All logs of a data folder."""

    root: Path

    def folder(self, uid: str) -> Path:
        """Where a pod's logs are kept. A uid that is no plain name is refused with ValueError."""
        if not uid or uid.strip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"):
            raise ValueError(f"{uid!r} is no uid")
        return self.root / uid

    def begin(self, pod: Obj) -> None:
        """A pod begins to print."""
        folder = self.folder(uid_of(pod))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / ENDED).unlink(missing_ok=True)
        spec = pod.get("spec") or {}
        first, mains = spec.get("initContainers") or (), spec.get("containers") or ()
        names = [c.get("name") for c in (*first, *mains)]
        told = {"namespace": namespace(pod), "name": name(pod), "containers": names, "first": len(first)}
        (folder / "pod.json").write_text(json.dumps(told))

    def ended(self, uid: str) -> None:
        """The pod prints no more: its logs may be compressed."""
        folder = self.folder(uid)
        if folder.is_dir():
            (folder / ENDED).touch()

    def has(self, uid: str) -> bool:
        """Whether anything of the pod is kept."""
        return self.folder(uid).is_dir()

    def is_over(self, uid: str) -> bool:
        """Whether nothing more will come."""
        folder = self.folder(uid)
        return not folder.is_dir() or (folder / ENDED).exists()

    def containers(self, uid: str) -> list[str]:
        """The containers that the pod had, in its own order."""
        return [str(found) for found in self._told(uid).get("containers") or ()]

    def main(self, uid: str) -> str:
        """The first container that is no init container; empty when that is not known."""
        told = self._told(uid)
        names = [str(found) for found in told.get("containers") or ()]
        first = int(told.get("first") or 0)
        return names[first] if first < len(names) else ""

    def _told(self, uid: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.folder(uid) / "pod.json").read_text())
        except (OSError, ValueError):
            return {}
        return found

    def attempts(self, uid: str, container: str) -> list[int]:
        """The attempts of which something is kept, oldest first."""
        folder = self.folder(uid) / container
        if "/" in container or container in ("", ".", "..") or not folder.is_dir():
            return []
        return sorted(int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal())

    def stream(self, uid: str, container: str, attempt: int) -> FileStream:
        """One attempt's records."""
        return FileStream(self.folder(uid) / container / str(attempt))

    def lines(self, pod: Obj, container: str, tail: int | None, follow: bool) -> Iterator[str]:
        """Lines of the newest attempt, as the cluster's port gives them."""
        uid = uid_of(pod)
        attempts = self.attempts(uid, container)
        stream = self.stream(uid, container, attempts[-1] if attempts else 0)
        records, position = stream.read(START, _CHUNK) if tail is None else stream.tail(tail)
        while True:
            yield from _joined(records)
            records, position = stream.read(position, _CHUNK)
            if not records:
                if not follow or self.is_over(uid):
                    return
                time.sleep(_POLL)


def _joined(records: list[Record]) -> Iterator[str]:
    """Lines of records; pieces of one line come together where they stand together."""
    open_line = b""
    for record in records:
        open_line += record.text
        if record.full:
            yield open_line.decode(errors="replace")
            open_line = b""
    if open_line:
        yield open_line.decode(errors="replace")
