"""Texts of Django and of the admin's look that their own catalogs lack in a language of ours. Ours has them, and comes first."""

from __future__ import annotations

from django.utils.translation import gettext_noop as _
from django.utils.translation import ngettext_lazy

TEXTS = (
    _("Add new item"),
    _("Changed by"),
    _("Change reason"),
    _("Code"),
    _("Comment"),
    _("Date from"),
    _("Date to"),
    _("False"),
    _("General"),
    _("Group permissions"),
    _("Non field specific"),
    _("Not enough data."),
    _("Object permissions"),
    _("Reset to default"),
    _("Select action"),
    _("Select action to run"),
    _("Select record"),
    _("Select value"),
    _("System"),
    _("True"),
    _("User permissions"),
    _("Value"),
    _("You have been successfully logged out from the administration"),
    ngettext_lazy(
        "This password is too short. It must contain at least %d character.",
        "This password is too short. It must contain at least %d characters.",
        8,
    ),
    ngettext_lazy(
        "Your password must contain at least %(min_length)d character.",
        "Your password must contain at least %(min_length)d characters.",
        "min_length",
    ),
)
