"""Parts of pages that are drawn on the server and come whole over the live channel, in every language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import translation


def in_all_languages(template: str, context: Callable[[], dict[str, Any]]) -> dict[str, str]:
    """A template's text by language; its words are chosen while the language is in force."""
    html = {}
    for code, _name in settings.LANGUAGES:
        with translation.override(code):
            html[code] = render_to_string(template, context())
    return html
