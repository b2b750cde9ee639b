"""Queue states with their labels."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class QueueState(models.TextChoices):
    """Volcano's queue states. An empty state (a queue that no controller has seen yet) counts as Open."""

    OPEN = "Open", _("Open")
    CLOSING = "Closing", _("Closing")
    CLOSED = "Closed", _("Closed")
    UNKNOWN = "Unknown", _("Unknown")
