"""The scheduler's configuration as people change it: checked, compared, tried, written where it may be, and its history.

Two never overwrite each other: who saves says which version he began from.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from itertools import pairwise
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from cluster import runtime
from cluster.errors import BadRequest, Conflict, FieldError, Forbidden
from portal import parts
from portal.models import ConfigurationVersion, SchedulerConfiguration
from scheduler import conf as configuration
from scheduler.conf import ConfError, Configuration, Fault
from scheduler.unknown import unknown_arguments

LONGEST = 100_000
"""Characters of a configuration."""
FILE = "volcano-scheduler.conf"
_saving = threading.Lock()


@dataclass(frozen=True, slots=True)
class Checked:
    """A text that was read: `loaded` is None while it has `faults`."""

    text: str
    loaded: Configuration | None = None
    faults: Sequence[Fault] = field(default=())


def check(text: str) -> Checked:
    """Read a text as strictly as an editor should: an argument that does nothing is a fault as well."""
    if len(text) > LONGEST:
        return Checked(text, None, [Fault(0, _("A configuration has at most %(count)s characters") % {"count": LONGEST})])
    try:
        loaded = configuration.load(text)
    except ConfError as error:
        return Checked(text, None, list(error.faults))
    faults = unknown_arguments(loaded)
    return Checked(text, None if faults else loaded, faults)


def warnings(text: str) -> list[Fault]:
    """What is odd about a configuration that is in force all the same; nothing of one that cannot be read."""
    try:
        return unknown_arguments(configuration.load(text))
    except ConfError:
        return []


@dataclass(frozen=True, slots=True)
class Changed:
    """A line of a diff: `sort` is add, del, at (where it is) or same."""

    sort: str
    text: str


def diff(old: str, new: str) -> list[Changed]:
    """What is different, with three lines around."""
    lines = list(unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=3))[2:]
    sorts = {"+": "add", "-": "del", "@": "at"}
    return [Changed(sorts.get(line[:1], "same"), line) for line in lines]


# -- where it is written -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """Where a new configuration is written: `path`, or None with the reason `why` it cannot be from here."""

    path: Path | None
    why: str = ""


def target() -> Target:
    """Where this process can write it, so that the running scheduler reads it."""
    running = parts.current()
    if not settings.BASALT_SCHEDULER:
        return Target(None, _("Another scheduler than Basalt’s serves this cluster."))
    if running is None:
        return Target(None, _("The scheduler is a process of its own: its file is in a ConfigMap or on its machine."))
    source = running.scheduler.conf.state.source
    if not source:
        return Target(None, _("The scheduler was started without a file."))
    path = Path(source)
    if path.is_relative_to(settings.BASE_DIR):
        path = own_file()  # what came with the program stays as it came
    return Target(path) if _writable(path) else Target(None, _("The file %(path)s may not be written.") % {"path": path})


def own_file() -> Path:
    """The configuration that was saved here, in place of the one that comes with the program."""
    return Path(settings.DATA_DIR) / FILE


def _writable(path: Path) -> bool:
    return os.access(path if path.exists() else path.parent, os.W_OK) and os.access(path.parent, os.W_OK)


def save(text: str, base: int, who: str, note: str = "") -> ConfigurationVersion:
    """Write a configuration, which the running scheduler then reads, and keep it as a version.

    `base` is the version that it was made from. Raises BadRequest with every fault, Conflict when another version is in force by
    now, Forbidden where it cannot be written from here.
    """
    checked = check(text)
    if checked.faults:
        raise BadRequest(_("The configuration has faults."), [_field(fault) for fault in checked.faults])
    place = target()
    if place.path is None:
        raise Forbidden(place.why)
    with _saving:
        newest = newest_version()
        if newest is not None and newest.pk != base:
            raise Conflict(
                _("Version %(newest)s is in force by now, and this was made from version %(base)s.")
                % {"newest": newest.pk, "base": base}
            )
        version = ConfigurationVersion(at=runtime.now(), who=who, source=str(place.path), text=text, note=note[:200])
        version.save()  # before the scheduler tells of it, which would else count as somebody else's change
        try:
            _write(place.path, text)
        except OSError as error:
            version.delete()
            raise Forbidden(_("The file cannot be written: %(why)s") % {"why": error.strerror or error}) from None
        running = parts.current()
        if running is not None:
            running.scheduler.conf.follow(place.path)
    return version


def _field(fault: Fault) -> FieldError:
    return FieldError(f"/line/{fault.line}" if fault.line else "/", fault.message)


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
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


# -- versions ----------------------------------------------------------------------------------------------------------


def newest_version() -> ConfigurationVersion | None:
    """The version in force."""
    return ConfigurationVersion.objects.first()


def in_force() -> SchedulerConfiguration | None:
    """What the scheduler told last."""
    return SchedulerConfiguration.objects.first()


def history(most: int = 50) -> list[tuple[ConfigurationVersion, list[Changed]]]:
    """The newest versions, each with what it changed."""
    found = list(ConfigurationVersion.objects.all()[: most + 1])
    before = {each.pk: older.text for each, older in pairwise(found)}
    return [(each, diff(before[each.pk], each.text) if each.pk in before else []) for each in found[:most]]
