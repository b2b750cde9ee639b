"""Whose session is it, now? Asked again while a socket is open, since a session may end before its page is closed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest


def user_of(session_key: str | None) -> Any | None:
    """The user who is signed in by this session, or None when it ended, its user was locked, or the password changed."""
    if not session_key:
        return None
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    return user if user.is_authenticated and user.is_active else None
