"""Parts of pages that are drawn on the server and come whole over the live channel, in every language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import translation


def in_all_languages(template: str, context: Callable[[], dict[str, Any]]) -> dict[str, str]:
    """A template's text by language; its words are chosen while the language is in force."""
    html: dict[str, str] = parts_in_all_languages({"": template}, context)[""]["html"]
    return html


def parts_in_all_languages(templates: Mapping[str, str], context: Callable[[], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The parts of a page by name, as rows; what they show in common is worked out once a language."""
    found: dict[str, dict[str, Any]] = {name: {"uid": name, "html": {}} for name in templates}
    for code, _name in settings.LANGUAGES:
        with translation.override(code):
            shown = context()
            for name, template in templates.items():
                found[name]["html"][code] = render_to_string(template, shown)
    return found
