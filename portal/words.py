"""The words that scripts show, translated on the server so that there is one source of language."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from jobs.choices import GroupPhase, JobPhase, PodPhase


def counted() -> dict[str, tuple[str, str]]:
    """Figures of the overview that stand in a phrase: for one, and for any other number."""
    return {
        "pods_running": (_("in %(n)s pod"), _("in %(n)s pods")),
        "gpus_waiting": (_("asking for %(n)s GPU"), _("asking for %(n)s GPUs")),
        "jobs_ended": (_("of %(n)s job that ended"), _("of %(n)s jobs that ended")),
    }


def for_scripts() -> dict[str, object]:
    """Sentences with `%(name)s` places, phases by value, and the forms of a duration."""
    phases: dict[str, str] = {}
    for choices in (GroupPhase, PodPhase, JobPhase):
        phases.update({value: str(label) for value, label in choices.choices})
    return {
        "phases": phases,
        "live": _("Live"),
        "offline": _("Offline"),
        "connecting": _("Connecting"),
        "since": _("since %(time)s"),
        "signedOut": _("You are signed out. Reload the page to sign in again."),
        "lost": _("Live updates lost at %(time)s."),
        "moment": _("You see the state of that moment. Trying again in %(seconds)s s; pages still load."),
        "new": _("%(count)s new"),
        "manyNew": _("Many changed"),
        "changed": _("Changed"),
        "days": pgettext("duration", "%(days)d d %(hours)02d h"),
        "hours": pgettext("duration", "%(hours)d h %(minutes)02d min"),
        "minutes": pgettext("duration", "%(minutes)d min"),
        "seconds": pgettext("duration", "%(seconds)d s"),
        "asked": _("in use plus asked"),
        "span": _("%(state)s %(duration)s"),
        "noNode": _("no node"),
        "others": _("others"),
        "logLines": _("%(n)s lines"),
        "logMatches": _("%(n)s of %(all)s lines match"),
        "logOver": _("The containers have ended: this is all of their log that is kept."),
        "logCut": _("The beginning of a long log was let go."),
        "logRefused": _("You may not read this log any more."),
        "logBusy": _("Too many logs are being followed now: reload the page later."),
        "logBroken": _("The log broke off. Trying again."),
        "freeOf": _("%(free)s of %(total)s free"),
    }
