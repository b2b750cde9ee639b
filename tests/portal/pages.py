"""Reading pages as people do: signed in, and for their words."""

from __future__ import annotations

import html
import re
from typing import Any

from django.http import HttpResponse
from django.test import Client


def signed_in(user: Any) -> Client:
    """A client with the session of a user."""
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return client


def text(answer: HttpResponse) -> str:
    """A page's words without its tags."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.content.decode())))
