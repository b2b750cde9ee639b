"""Ways to a start in words, in the active language: what to change, and what that does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from cluster.display import number, quantity, spaced

Values = Mapping[str, Any]


def title(code: str, values: Values) -> str:
    """What is to be changed, or waited for."""
    said = {
        "minimum": _("Lower the gang's minimum from %(from)s to %(to)s"),
        "per_pod": _("Ask %(to)s for each pod of %(task)s, not %(from)s"),
        "replicas": _("Run %(to)s pods of %(task)s, not %(from)s"),
        "queue": _("Submit it to queue %(queue)s"),
        "wait": _("Wait until %(job)s ends"),
        "priority": _("Raise its priority to %(class)s"),
        "placement": _placement(values),
    }
    return spaced(said[code] % _places(code, values))


def _placement(values: Values) -> str:
    said = {
        "selector": _("Drop the node selector %(key)s=%(value)s of %(task)s"),
        "selectors": _("Drop all node selectors of %(task)s"),
        "affinity": _("Drop the required node affinity of %(task)s"),
        "taint": _("Let %(task)s tolerate the taint %(key)s=%(value)s"),
        "tier": _("Allow network domains up to tier %(to)s, not %(from)s"),
        "soft": _("Make its network topology a wish, not a must"),
    }
    return said.get(str(values.get("what")), "")


def effect(starts: int, pods: int, *, evicted: int, delayed: int) -> str:
    """How many pods start, and at whose cost."""
    if starts >= pods:
        first = ngettext("Its pod starts", "All %(count)s pods start", pods) % {"count": number(pods)}
    else:
        first = ngettext(
            "%(count)s of %(all)s pods starts, the others when there is room",
            "%(count)s of %(all)s pods start, the others when there is room",
            starts,
        ) % {"count": number(starts), "all": number(pods)}
    parts = [first]
    if evicted:
        parts.append(ngettext("evicts %(count)s pod", "evicts %(count)s pods", evicted) % {"count": number(evicted)})
    if delayed:
        parts.append(ngettext("%(count)s job starts later", "%(count)s jobs start later", delayed) % {"count": number(delayed)})
    return spaced(" · ".join(parts))


def effect_and_when(effect: str, soon: str) -> str:
    """Both in one line."""
    return _("%(effect)s, %(soon)s") % {"effect": effect, "soon": soon}


def how_soon(cycles: int) -> str:
    """After how many cycles."""
    if cycles <= 1:
        return _("in the next cycle")
    return _("within %(count)s cycles") % {"count": number(cycles)}


def evicts(parties: Sequence[tuple[str, int]]) -> str:
    """Whose pods have to go, by job."""
    each = [
        ngettext("%(count)s pod of %(job)s", "%(count)s pods of %(job)s", count) % {"count": number(count), "job": job}
        for job, count in parties
    ]
    return spaced(_("Evicts %(pods)s.") % {"pods": _(", ").join(each)})


def delays(jobs: Sequence[str]) -> str:
    """Who starts later for it."""
    return spaced(_("Starts later for it: %(jobs)s.") % {"jobs": _(", ").join(jobs)})


def holds(values: Values) -> str:
    """What the job that is waited for holds."""
    resource = str(values.get("resource") or "cpu")
    return spaced(_("It holds %(amount)s. Nothing to change.") % {"amount": quantity(int(values.get("amount") or 0), resource)})


def _places(code: str, values: Values) -> dict[str, str]:
    found = {key: number(value) if isinstance(value, int) else str(value) for key, value in values.items()}
    if code == "per_pod":
        resource = str(values["resource"])
        found |= {key: quantity(int(values[key]), resource) for key in ("from", "to")}
    return found
