"""Sentences that know how they were made, so that they can be said in the reader's language.

Rules write English once, as a template with named values (`said`); it is an ordinary text for logs, events and whoever does not
care. Pages and REST say it again with `words`, by the catalog's translation of the template.
"""

from __future__ import annotations

from typing import Any


class Said(str):
    """A text made of a template and values."""

    template: str
    values: dict[str, Any]


def said(template: str, /, **values: Any) -> Said:
    """A sentence. The template is marked for translation by standing here, so it has to be a literal.

    A value may be an exception, of which its own sentence is kept, or a tuple of sentences, which are told one after the other.
    """
    values = {name: told(value) if isinstance(value, BaseException) else value for name, value in values.items()}
    made = Said(template % {name: _joined(value, "; ") for name, value in values.items()} if values else template)
    made.template, made.values = template, values
    return made


def told(error: BaseException) -> str:
    """What an exception says, still a sentence where it was made of one."""
    return error.args[0] if error.args and isinstance(error.args[0], Said) else str(error)


def words(text: str) -> str:
    """The sentence in the active language; any other text as it is."""
    if not isinstance(text, Said):
        return text
    from django.utils.translation import gettext  # only who speaks to people needs Django, and not who merely refuses

    translated = gettext(text.template)
    return translated % {name: _value(value) for name, value in text.values.items()} if text.values else translated


def _value(value: Any) -> Any:
    """Values that are sentences themselves, such as what would be right, are said in the same language."""
    if isinstance(value, tuple):
        from django.utils.translation import pgettext

        return _joined(tuple(map(_value, value)), pgettext("between sentences", "; "))
    return words(value) if isinstance(value, str) else value


def _joined(value: Any, between: str) -> Any:
    return between.join(value) if isinstance(value, tuple) else value
