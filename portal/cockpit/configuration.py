"""The scheduler's configuration as people change it: checked, compared, tried, written where it may be, and its history.

Two never overwrite each other: who saves says which version he began from.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from cluster.errors import ApiError, BadRequest, Conflict, FieldError, Forbidden, Unanswered
from cluster.said import words
from portal import parts
from portal.cockpit import versions
from portal.cockpit.places import FilePlace, MapPlace, Place
from portal.cockpit.versions import Live
from portal.models import ConfigurationVersion, SchedulerConfiguration, Writing
from scheduler import conf as configuration
from scheduler.conf import ConfError, Configuration, Fault
from scheduler.configmap import MapKey
from scheduler.unknown import unknown_arguments

FILE = "volcano-scheduler.conf"
_saving = threading.RLock()
"""Held while somebody saves, and while a place is looked at where nobody else writes: what is half saved is not lost."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A text that was read: `loaded` is None while it has `faults`."""

    text: str
    loaded: Configuration | None = None
    faults: Sequence[Fault] = field(default=())


def check(text: str) -> Checked:
    """Read a text as strictly as an editor should: an argument that does nothing is a fault as well."""
    try:
        loaded = configuration.load(text)
    except ConfError as error:
        return Checked(text, None, list(error.faults))
    faults = configuration.first(unknown_arguments(loaded))
    return Checked(text, None if faults else loaded, faults)


def warnings(text: str) -> list[Fault]:
    """What is odd about a configuration that is in force all the same; nothing of one that cannot be read."""
    try:
        return configuration.first(unknown_arguments(configuration.load(text)))
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
    """Where a new configuration is written: `place`, or None with the reason `why` it cannot be from here."""

    place: Place | None
    why: str = ""


def target() -> Target:
    """Where this process can write it, so that the running scheduler reads it."""
    running = parts.current()
    if not settings.BASALT_SCHEDULER:
        return Target(None, _("Another scheduler than Basalt’s serves this cluster."))
    if running is None:
        return _elsewhere(told())
    path = running.scheduler.conf.path
    if path is None:
        return Target(None, _("The scheduler was started without a file."))
    if path.is_relative_to(settings.BASE_DIR):
        return Target(FilePlace(own_file(), path))  # what came with the program stays as it came
    return Target(FilePlace(path, path))


def _elsewhere(row: SchedulerConfiguration | None) -> Target:
    """Where a scheduler that is a process of its own reads it."""
    if row is not None and row.watched:
        return Target(MapPlace(MapKey.parse(row.watched)))
    return Target(None, _("The scheduler is a process of its own, and reads a file of its machine."))


def own_file() -> Path:
    """The configuration that was saved here, in place of the one that comes with the program."""
    return Path(settings.DATA_DIR) / FILE


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand where it is written.

    `why` is why it cannot be written from here, empty when it can. `newest` is the version that is there, `in_force` the one
    that the scheduler runs by (None: one that is not known), `told` what it told last.
    """

    place: Place | None
    live: Live | None
    why: str
    newest: ConfigurationVersion | None
    in_force: ConfigurationVersion | None
    told: SchedulerConfiguration | None

    @property
    def is_absent(self) -> bool:
        """Whether there is nothing that a text could be written to, and it is to be made."""
        return self.live is not None and not self.live.exists and isinstance(self.place, MapPlace)

    @property
    def kubectl(self) -> str:
        """What makes the ConfigMap that is absent, from the file that is offered."""
        if not isinstance(self.place, MapPlace):
            return ""
        key = self.place.key
        return f"kubectl -n {key.namespace} create configmap {key.name} --from-file={key.key}={FILE}"

    @property
    def is_late(self) -> bool:
        """Whether the scheduler has not taken up what is there, and does not say why not."""
        if self.newest is None or self.told is None or self.newest.text == self.told.text:
            return False
        return not (self.told.faults and self.told.broken == self.newest.text)


def standing(*, asks: bool = False) -> Standing:
    """Look at what is really there. `asks`: also whether it may be written."""
    found = target()
    why, live = found.why, None
    if found.place is not None:
        try:
            live = _look(found.place)
            why = found.place.refused(live) if asks else ""
        except ApiError as error:
            why = _("What is at %(place)s cannot be read: %(why)s") % {"place": found.place, "why": words(error.message)}
    row = told()
    return Standing(found.place, live, why, versions.newest(), versions.in_force(row), row)


def _look(place: Place) -> Live:
    with _saving if place.alone else nullcontext():
        return versions.look(place.read, str(place), alone=place.alone)


def save(text: str, base: int, who: str, note: str = "") -> ConfigurationVersion:
    """Write a configuration, which the running scheduler then reads, and keep it as a version.

    `base` is the version that it was made from. Raises BadRequest with every fault, Conflict when another version is in its
    place by now, Forbidden where it cannot be written from here, and whatever the cluster refuses it with.
    """
    checked = check(text)
    if checked.faults:
        raise BadRequest(_("The configuration has faults."), [_field(fault) for fault in checked.faults])
    found = target()
    place = found.place
    if place is None:
        raise Forbidden(found.why)
    with _saving:
        live = _look(place)
        if why := place.refused(live):
            raise Forbidden(why)
        newest = versions.newest()
        if newest is not None and newest.text == text == live.text:
            return newest  # it is there already: it was sent twice, or says nothing new
        _check_base(base)
        version = versions.begin(text, who, str(place), note, live)
        try:
            place.write(text, live)
        except Unanswered:
            raise  # it may be written: whoever looks next sees
        except ApiError as error:
            versions.withdraw(version)
            if isinstance(error, Conflict):
                _look(place)
                _check_base(base)
            raise
        versions.finish(version)
    return version


def _check_base(base: int) -> None:
    newest = versions.newest()
    if newest is not None and newest.pk != base:
        raise Conflict(
            _("Version %(newest)s is there by now, and this was made from version %(base)s.")
            % {"newest": newest.pk, "base": base}
        )


def _field(fault: Fault) -> FieldError:
    return FieldError(f"/line/{fault.line}" if fault.line else "/", fault.message)


# -- versions ----------------------------------------------------------------------------------------------------------


def told() -> SchedulerConfiguration | None:
    """What the scheduler told last: the configuration in force."""
    return SchedulerConfiguration.objects.first()


def history(most: int = 50) -> list[tuple[ConfigurationVersion, list[Changed]]]:
    """The newest versions, each with what it changed of the one before it that came where the scheduler reads."""
    found = list(ConfigurationVersion.objects.all()[: most + 1])
    shown, before = [], found[-1] if len(found) > most else None
    for version in reversed(found[:most]):
        shown.append((version, diff(before.text, version.text) if before is not None else []))
        before = version if version.writing == Writing.DONE else before
    return shown[::-1]
