"""How starts move, as a user may see it: rows of a table, and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf, isfinite
from typing import Any

from django.core import signing
from django.utils import timezone
from django.utils.translation import gettext as _

from cluster import runtime
from cluster.display import duration, number, spaced
from cluster.errors import Unavailable
from jobs.models import Job
from jobs.starts import Start, ahead
from portal.outlook.desk import desk
from portal.outlook.ground import DEEP, HORIZON
from portal.outlook.past import instant
from portal.outlook.questions import Move, Outlook, Question, Span
from portal.unblock.shown import Names

Json = dict[str, Any]
MOST = 5
"""Jobs that are named of those that start later."""
MINE = 20
"""Jobs that are named of those that a change is about."""
LASTS = 3600
"""Seconds for which a page may ask again."""
PATIENT = 1.5
"""Seconds that a page without script waits."""


def ask(user: Any, question: Question, wait: float = 0.0) -> Outlook:
    """What is known of a user's question within so many seconds."""
    try:
        return desk.ask(question, wait, user.pk)
    except Unavailable:
        return Outlook("unavailable")


# -- a question in a page's keeping ------------------------------------------------------------------------------------


def token(user: Any, question: Question) -> str:
    """The question for this user to ask again, of whatever process: signed, so that nothing else is asked in its name."""
    return signing.dumps([question.kind, question.data], salt=f"outlook/{user.pk}", compress=True)


def of_token(user: Any, text: str) -> Question | None:
    """The question; None for one that is not this user's, or too old."""
    try:
        kind, data = signing.loads(text, salt=f"outlook/{user.pk}", max_age=LASTS)
    except signing.BadSignature:
        return None
    return Question(kind, data)


# -- rows --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """One job: its name, its start as it is and then (None: it is not there), and in words by how much that moves."""

    name: str
    job: Job | None
    before: Start | None
    after: Start | None
    moved: str


def part(user: Any, question: Question, wait: float = 0.0) -> Json:
    """What the part of a page shows."""
    found = ask(user, question, wait)
    now, named = runtime.now(), found.delayed[:MOST]
    names = Names(user, {each.uid for each in [*found.mine[:MINE], *named]})
    mine = [_row(names, each, now) for each in found.mine[:MINE]]
    return {
        "outlook": found,
        "question": question,
        "token": token(user, question),
        "at": instant(found.at) if found.at else None,
        "draft": mine[0] if question.kind == "draft" and mine else None,
        "moves": mine if question.kind != "draft" else [],
        "moves_more": max(0, len(found.mine) - MINE),
        "later": [_row(names, each, now) for each in named],
        "later_more": max(0, len(found.delayed) - MOST),
        "place": place(found, _queue(question)),
        "deep": number(DEEP),
    }


def place(found: Outlook, queue: str) -> str:
    """The rank of a draft, in words; empty where it is in no line."""
    at = found.position
    if at is None:
        return ""
    values = {"rank": number(at.rank), "of": number(at.among), "queue": queue, "place": number(at.place), "line": number(at.line)}
    return spaced(_("Place %(rank)s of %(of)s in %(queue)s, %(place)s of %(line)s in the cluster.") % values)


def clock(moment: datetime) -> str:
    """An instant in the reader's zone, for sentences: with the day when that is not today."""
    local = timezone.localtime(moment)
    return local.strftime("%H:%M" if local.date() == timezone.localtime(runtime.now()).date() else "%m-%d %H:%M")


def moved(seconds: float) -> str:
    """By how much P50 moves, in words."""
    if seconds == inf:
        return _("no longer in sight")
    if seconds == -inf:
        return _("comes into sight")
    if abs(seconds) < 1:
        return _("as before")
    template = _("%(length)s later") if seconds > 0 else _("%(length)s earlier")
    return spaced(template % {"length": duration(abs(seconds))})


def _row(names: Names, move: Move, now: datetime) -> Row:
    return Row(
        names.name(move.uid), names.job(move.uid), start(move.before, now), start(move.after, now),
        moved(move.delay) if move.before is not None else "",
    )  # fmt: skip


def start(span: Span | None, now: datetime) -> Start | None:
    """A likely start as of now."""
    if span is None:
        return None
    p50, p90 = (instant(each) if isfinite(each) else None for each in (span.p50, span.p90))
    return ahead(p50, p90, now) or Start(now, None, is_due=True)


def _queue(question: Question) -> str:
    return str(question.data["spec"].get("queue") or "default") if question.kind == "draft" else ""


# -- JSON --------------------------------------------------------------------------------------------------------------


def as_json(user: Any, question: Question, wait: float = 0.0) -> Json:
    """How starts move, for programs."""
    found = ask(user, question, wait)
    names = Names(user, {each.uid for each in [*found.mine, *found.delayed[:MOST]]})
    at = found.position
    return {
        "state": found.state,
        "at": instant(found.at).isoformat() if found.at else None,
        "position": None
        if at is None
        else {"queue": {"rank": at.rank, "of": at.among}, "all": {"rank": at.place, "of": at.line}},
        "jobs": _moves(names, found.mine),
        "delayed": _moves(names, found.delayed[:MOST]),
        "delayed_total": len(found.delayed),
        "sooner_total": found.sooner,
        "futures": found.futures,
        "known": found.known,
        "by": found.by,
        "horizon_seconds": int(HORIZON),
    }


def _moves(names: Names, moves: Sequence[Move]) -> list[Json]:
    now = runtime.now()
    return [
        names.as_json(each.uid)
        | {
            "before": _span(start(each.before, now)),
            "after": _span(start(each.after, now)),
            "delay_seconds": round(each.delay) if isfinite(each.delay) else None,
        }
        for each in moves
    ]


def _span(found: Start | None) -> Json | None:
    if found is None:
        return None
    p50, p90 = (each.isoformat() if each else None for each in (found.p50, found.p90))
    return {"p50": p50, "p90": p90, "due": found.is_due}
