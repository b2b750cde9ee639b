"""The history of the configuration: which texts were where the scheduler reads it, in the order in which they came there.

A version is begun before it is written, and done afterwards. Who dies in between leaves it begun; whoever looks next knows by
what is really there what became of it. A text that nobody here wrote is a version too, of nobody.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Subquery
from django.utils.translation import gettext as _

from cluster.projection import writing
from cluster.runtime import now
from portal.models import ConfigurationVersion, SchedulerConfiguration, Writing
from scheduler.conf import as_kept

LONGEST_WRITE = timedelta(seconds=60)
"""After which nobody is still writing: a request to a cluster is given up long before."""
LOOKS = 5


@dataclass(frozen=True, slots=True)
class Live:
    """What is where the scheduler reads: `text` is None where nothing is.

    `revision` is of what a new text takes the place of, `by` the program that wrote it, where they are known; `exists` whether
    there is something to hold a text.
    """

    text: str | None
    revision: str = ""
    by: str = ""
    exists: bool = True


def newest() -> ConfigurationVersion | None:
    """The newest version that came where the scheduler reads."""
    return ConfigurationVersion.objects.filter(writing=Writing.DONE).first()


def in_force(told: SchedulerConfiguration | None = None) -> ConfigurationVersion | None:
    """The newest version with the text that the scheduler runs by, as it `told`, or as it told last; without the text."""
    text = told.text if told is not None else Subquery(SchedulerConfiguration.objects.values("text")[:1])
    return ConfigurationVersion.objects.filter(writing=Writing.DONE, text=text).defer("text").first()


def look(read: Callable[[], Live], source: str, *, alone: bool) -> Live:
    """What is really there now. What it is becomes the newest version if it is not yet, and what was begun is settled.

    `alone`: nobody but the caller writes there. Raises what `read` does.
    """
    live = Live(None)
    for _look in range(LOOKS):
        before = _latest()
        live = read()
        with writing(ConfigurationVersion):
            if _latest() != before:
                continue  # somebody wrote meanwhile, perhaps after what was read
            _settle(live, alone=alone)
            if live.text is not None:
                _take_in(as_kept(live.text), now(), source, live.by)
            return live
    return live


def seen(text: str, at: datetime, source: str, *, newer: bool = False) -> None:
    """The scheduler runs by a text since `at`: a version if it is none yet. News older than the newest version tell nothing.

    `newer`: another one is there that it does not use, so that this one is only new if nobody ever saw it.
    """
    with writing(ConfigurationVersion):
        if not (newer and ConfigurationVersion.objects.filter(writing=Writing.DONE, text=text).exists()):
            _take_in(text, at, source, "")


def note_of(number: int) -> str:
    """The note of a version that puts an older one in force again. It is kept in English, and said by `in_words`."""
    return f"as version {number}"


def in_words(note: str) -> str:
    """A note in the reader's language, as far as it is not what somebody wrote himself."""
    again = re.fullmatch(r"as version ([0-9]{1,18})", note)
    return _("as version %(number)s") % {"number": again[1]} if again else note


def begin(text: str, who: str, source: str, note: str, live: Live) -> ConfigurationVersion:
    """A version that is about to be written."""
    fields = {"text": text, "who": who, "source": source, "note": note[:200], "revision": live.revision}
    with writing(ConfigurationVersion):
        return ConfigurationVersion.objects.create(at=now(), writing=Writing.BEGUN, **fields)


def finish(version: ConfigurationVersion) -> None:
    """It is written."""
    _become(version, Writing.DONE)


def withdraw(version: ConfigurationVersion) -> None:
    """It was refused, and so is none."""
    version.delete()


def _latest() -> tuple[int, str] | None:
    return ConfigurationVersion.objects.values_list("pk", "writing").first()


def _settle(live: Live, *, alone: bool) -> None:
    """Say of versions that were begun what became of them."""
    for version in ConfigurationVersion.objects.filter(writing=Writing.BEGUN):
        if version.text == live.text:
            _become(version, Writing.DONE)
        elif alone or version.revision != live.revision or now() - version.at > LONGEST_WRITE:
            _become(version, Writing.LOST)


def _take_in(text: str, at: datetime, source: str, by: str) -> None:
    latest = newest()
    begun = ConfigurationVersion.objects.filter(writing=Writing.BEGUN, text=text).first()
    if begun is not None and (latest is None or begun.pk > latest.pk):
        _become(begun, Writing.DONE)
    elif latest is None or (latest.text != text and latest.at <= at):
        ConfigurationVersion.objects.create(at=at, source=source, text=text, note=by[:200])
    elif by and latest.text == text and (latest.who, latest.note, latest.source) == ("", "", source):
        ConfigurationVersion.objects.filter(pk=latest.pk).update(note=by[:200])  # the scheduler was quicker, and knows no program


def _become(version: ConfigurationVersion, state: Writing) -> None:
    version.writing = state
    ConfigurationVersion.objects.filter(pk=version.pk).update(writing=state)
