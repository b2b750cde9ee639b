"""Who opened this socket, and does that still hold? Asked again while it is open: a session or token may end before it is closed.

A page comes with its session's cookie, a program with `Authorization: Token …` as it sends it to the REST API.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest
from knox.auth import TokenAuthentication
from rest_framework.exceptions import AuthenticationFailed


def who(scope: Any) -> Callable[[], Any | None]:
    """What says who opened a socket, now: the user, or None when session or token ended, or the user was locked.

    A token that is sent is the only thing that counts.
    """
    if header := authorization(scope):
        return lambda: _of_token(header)
    session = scope.get("session")
    key = session.session_key if session else None
    return lambda: user_of(key)


def authorization(scope: Any) -> bytes:
    """The Authorization header of a handshake, which programs can send and browsers' scripts cannot; else nothing."""
    found: bytes = dict(scope.get("headers") or ()).get(b"authorization", b"")
    return found


def user_of(session_key: str | None) -> Any | None:
    """The user who is signed in by this session, or None when it ended, its user was locked, or the password changed."""
    if not session_key:
        return None
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    return user if user.is_authenticated and user.is_active else None


def _of_token(header: bytes) -> Any | None:
    """The user of a REST token, or None when it is none, has expired or was taken back."""
    scheme, _, token = header.strip().partition(b" ")
    if scheme.lower() != b"token" or not token.strip():
        return None
    try:
        user, _ = TokenAuthentication().authenticate_credentials(token.strip())
    except AuthenticationFailed:
        return None
    return user if user.is_active else None
