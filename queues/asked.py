"""What an address asks of pages about queues over time: a resource, a window, or two instants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from cluster.errors import BadRequest, FieldError, sentences
from cluster.said import said, words
from queues import history
from queues.sampling import KEEP

NORMAL = "1h"


@dataclass(frozen=True, slots=True)
class Window:
    """From when until when; `name` is that of a window which ends now, else empty."""

    begin: datetime
    end: datetime
    name: str = ""


def window(query: Mapping[str, str], now: datetime) -> Window:
    """`?window=` or `?from=&to=` (ISO 8601; `to` is now unless it is given). Raises BadRequest."""
    begin, end = _instant(query, "from"), _instant(query, "to") or now
    if begin is None:
        name = query.get("window") or NORMAL
        if name not in history.WINDOWS:
            known = ", ".join(history.WINDOWS)
            raise BadRequest(
                said("there is no window %(name)r", name=name),
                [FieldError("?window", said("is one of %(known)s", known=known), "choice")],
            )
        return Window(now - history.WINDOWS[name], now, name)
    if begin >= end:
        raise BadRequest(
            said("the window has no length"), [FieldError("?from", said("must be before the end of the window"), "range")]
        )
    if end - begin > KEEP + timedelta(days=1):
        raise BadRequest(
            said("the window is too long"),
            [FieldError("?from", said("samples are kept for %(days)s days", days=KEEP.days), "range")],
        )
    return Window(begin, end)


def instant(text: str) -> datetime | None:
    """An instant in ISO 8601, in the reader's time zone unless it names one; None for what is none."""
    try:
        found = parse_datetime(text.strip().replace(" ", "+") if "T" in text else text.strip())
    except ValueError:
        return None
    if found is None or not 1971 <= found.year <= 9000:  # others cannot be moved by a window, or into a time zone
        return None
    return timezone.make_aware(found) if timezone.is_naive(found) else found


def _instant(query: Mapping[str, str], name: str) -> datetime | None:
    text = query.get(name)
    if not text:
        return None
    found = instant(text)
    if found is None:
        raise BadRequest(
            said("%(text)r is no instant", text=text),
            [FieldError(f"?{name}", said("is ISO 8601, such as 2026-03-01T12:00:00Z"), "format")],
        )
    return found


def resource(query: Mapping[str, str], names: Sequence[str]) -> str:
    """`?resource=`, else the first. Raises BadRequest for one that no queue speaks of."""
    asked = query.get("resource") or names[0]
    if asked not in names:
        raise BadRequest(
            said("no queue speaks of %(asked)r", asked=asked),
            [FieldError("?resource", said("is one of %(known)s", known=", ".join(names)), "choice")],
        )
    return asked


def window_problem(error: BadRequest) -> str:
    """The same for a page."""
    return _("The address was not understood: %(problem)s. Shown is the last hour.") % {
        "problem": words(said("%(faults)s", faults=sentences(error.fields)))
    }
