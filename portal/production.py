"""What a web process of production needs and nobody may make up: several of them must agree on it."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register

LEAST_KEY = 50
"""Characters of a secret key; Django's own bound."""


def faults() -> list[tuple[str, str]]:
    """Setting and what is wrong with it; none outside production."""
    if not settings.PRODUCTION:
        return []
    found = []
    if len(key := os.environ.get("BASALT_SECRET_KEY", "")) < LEAST_KEY:
        lack = f"has {len(key)} characters" if key else "is missing"
        found.append(("BASALT_SECRET_KEY", f"{lack}: set {LEAST_KEY} random characters or more, the same for all web processes"))
    if not os.environ.get("BASALT_HOSTS") or "*" in settings.ALLOWED_HOSTS:
        found.append(("BASALT_HOSTS", "must name the hosts that people ask for, by commas, without *"))
    if not os.environ.get("DATABASE_URL"):
        found.append(("DATABASE_URL", "is missing: all processes share one PostgreSQL"))
    if settings.DEBUG:
        found.append(("BASALT_DEBUG", "shows the insides of the portal to everybody: leave it out"))
    return found


def refusal() -> str:
    """Why a web process must not start; empty when it may."""
    return "; ".join(f"{name} {what}" for name, what in faults())


@register(Tags.security, deploy=True)
def check(**_: Any) -> list[CheckMessage]:
    """The same for `manage.py check --deploy`."""
    return [Error(f"{name} {what}.", id=f"basalt.E{number:03}") for number, (name, what) in enumerate(faults(), 1)]
