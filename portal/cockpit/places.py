"""Where a configuration is written so that the scheduler reads it: a file of this process, or a ConfigMap of the cluster."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import structlog
from django.utils.translation import gettext as _

from cluster import runtime
from cluster.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from cluster.kinds import CONFIG_MAP
from cluster.port import Obj
from cluster.said import words
from portal import parts
from portal.cockpit.versions import Live
from scheduler.configmap import MapKey, said

log = structlog.get_logger(__name__)


class Place(Protocol):
    """`alone`: nobody but this process writes there. Every method raises ApiError for what is refused."""

    alone: bool

    def __str__(self) -> str:
        """As the scheduler names it."""
        ...

    def read(self) -> Live:
        """What is there now."""
        ...

    def refused(self, live: Live) -> str:
        """Why it cannot be written from here; empty where nothing is known that speaks against it."""
        ...

    def write(self, text: str, live: Live) -> None:
        """Put a text in the place of what was read, or raise Conflict when that is not there any more."""
        ...


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A file for the scheduler of this process, which for now reads another one, or this one already."""

    path: Path
    now_read: Path
    alone = True

    def __str__(self) -> str:
        return str(self.path)

    def read(self) -> Live:
        """What it says. A file that is no text says nothing that could be kept."""
        try:
            stamp = self.now_read.stat()
            return Live(self.now_read.read_text("utf-8"), f"{stamp.st_mtime_ns}-{stamp.st_size}")
        except (OSError, UnicodeDecodeError):
            return Live(None, exists=False)

    def refused(self, live: Live) -> str:
        """It is asked of the system."""
        path = self.path
        if os.access(path if path.exists() else path.parent, os.W_OK) and os.access(path.parent, os.W_OK):
            return ""
        return _("The file %(path)s may not be written.") % {"path": path}

    def write(self, text: str, live: Live) -> None:
        """Whole or not at all."""
        if self.read().revision != live.revision:
            raise Conflict(_("The file was changed meanwhile."))
        try:
            replace(self.path, text)
        except OSError as error:
            raise Forbidden(_("The file cannot be written: %(why)s") % {"why": error.strerror or error}) from None
        running = parts.current()
        if running is not None:
            running.scheduler.conf.follow(self.path)


def replace(path: Path, text: str) -> None:
    """Give a file another text, whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(path.stat().st_mode & 0o777 if path.exists() else 0o640)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


@dataclass(frozen=True, slots=True)
class MapPlace:
    """A key of a ConfigMap that the scheduler watches, read and written with the rights of this process."""

    key: MapKey
    alone = False

    def __str__(self) -> str:
        return str(self.key)

    def read(self) -> Live:
        """What it says, and who wrote that."""
        try:
            obj = runtime.current().get(CONFIG_MAP, self.key.name, self.key.namespace)
        except NotFound:
            return Live(None, exists=False)
        found = said(obj, self.key.key)
        return Live(found.text, found.revision, _author(obj, self.key.key))

    def refused(self, live: Live) -> str:
        """The cluster is asked, by a write that is not kept. What it says beside a plain no is left to the real one."""
        try:
            self._send(live, {}, dry_run=True)
        except Forbidden as error:
            return self._forbidden(error)
        except ApiError as error:
            log.debug("a trial of writing the configuration was not answered plainly", error=str(error))
        return ""

    def write(self, text: str, live: Live) -> None:
        """By the version that was read, so that nobody is overwritten."""
        try:
            self._send(live, {"data": {self.key.key: text}})
        except Forbidden as error:
            raise Forbidden(self._forbidden(error)) from None
        except (AlreadyExists, Conflict) as error:
            raise Conflict(words(error.message)) from None

    def _send(self, live: Live, body: Obj, *, dry_run: bool = False) -> None:
        cluster, meta = runtime.current(), {"name": self.key.name, "namespace": self.key.namespace}
        if live.exists:
            patch = {**body, "metadata": {"resourceVersion": live.revision}}
            cluster.patch(CONFIG_MAP, self.key.name, self.key.namespace, patch, dry_run=dry_run)
        else:
            cluster.create(CONFIG_MAP, {"metadata": meta, **body}, dry_run=dry_run)

    def _forbidden(self, error: Forbidden) -> str:
        return _("The portal has no right to write the ConfigMap %(map)s: %(why)s") % {
            "map": self.key.where,
            "why": words(error.message),
        }


def _author(obj: Obj, key: str) -> str:
    """The program that manages a key of a ConfigMap, as the server knows it."""
    entries = obj["metadata"].get("managedFields") or ()
    mine = [each for each in entries if f"f:{key}" in ((each.get("fieldsV1") or {}).get("f:data") or {})]
    newest = max(mine, key=lambda each: str(each.get("time") or ""), default={})
    return str(newest.get("manager") or "")
