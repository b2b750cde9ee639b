"""What simulations and their configurations are called when nobody gave them a name: kept in English, shown to each reader."""

from __future__ import annotations

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

IN_FORCE, DEFAULT, ANOTHER = _("in force"), _("Volcano's default"), _("another")
NOW, WORTH = _("The cluster as it is now"), _("What gang scheduling is worth")
OURS = frozenset({IN_FORCE, DEFAULT, ANOTHER, NOW, WORTH})


def named(name: str) -> str:
    """One of these in the reader's language; a name that somebody gave as it is."""
    return gettext(name) if name in OURS else name
