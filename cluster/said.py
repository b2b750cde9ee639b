"""Sentences that know how they were made, so that they can be said in the reader's language.

Rules write English once, as a template with named values (`said`); it is an ordinary text for logs, events and whoever does not
care. Pages and REST say it again with `words`, by the catalog's translation of the template.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext


class Said(str):
    """A text made of a template and values."""

    template: str
    values: dict[str, Any]


def said(template: str, /, **values: Any) -> Said:
    """A sentence. The template is marked for translation by standing here, so it has to be a literal."""
    made = Said(template % values if values else template)
    made.template, made.values = template, values
    return made


def words(text: str) -> str:
    """The sentence in the active language; any other text as it is."""
    if not isinstance(text, Said):
        return text
    translated = gettext(text.template)
    return translated % {name: _value(value) for name, value in text.values.items()} if text.values else translated


def _value(value: Any) -> Any:
    """Values that are sentences themselves, such as what would be right, are said in the same language."""
    return words(value) if isinstance(value, str) else value
