"""Connections to databases that broke, as all do when the database is restarted."""

from __future__ import annotations

from django.db import connections


def reconnect() -> None:
    """Let go of this thread's connections that broke: each would stay so, and the next use makes a new one."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
