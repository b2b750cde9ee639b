"""Sentences that know how they were made, so that they can be said in the reader's language.

Rules write English once, as a template with named values (`said`); it is an ordinary text for logs, events and whoever does not
care. Pages and REST say it again with `words`, by the catalog's translation of the template. A sentence that is kept beside its
text (`packed`) is one again when it is read (`unpacked`).
"""

from __future__ import annotations

import json
import re
from typing import Any

LONGEST = 4096
"""Characters of a packed sentence; what is longer is not packed."""
_DEEPEST = 8
_PLAIN = re.compile(r"(?:[^%]|%%|%\(\w{1,40}\)[sr])*")
"""Templates as `said` takes them. One from outside might ask for a width of a billion."""


class Said(str):
    """A text made of a template and values."""

    template: str
    values: dict[str, Any]


def said(template: str, /, **values: Any) -> Said:
    """A sentence. The template is marked for translation by standing here, so it has to be a literal.

    A value may be an exception, of which its own sentence is kept; a tuple of sentences, which are told one after the other; or a
    list of parts of one.
    """
    values = {name: told(value) if isinstance(value, BaseException) else value for name, value in values.items()}
    return _made(template, values)


def sayable(template: str) -> str:
    """A template that stands in a table and is said later: marked for translation."""
    return template


def _made(template: str, values: dict[str, Any]) -> Said:
    made = Said(template % {name: _joined(value) for name, value in values.items()} if values else template)
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
    if isinstance(value, tuple | list):
        from django.utils.translation import pgettext

        between = pgettext("between sentences", "; ") if isinstance(value, tuple) else pgettext("between parts", ", ")
        return between.join(map(_value, value))
    return words(value) if isinstance(value, str) else value


def _joined(value: Any) -> Any:
    return (", " if isinstance(value, list) else "; ").join(value) if isinstance(value, tuple | list) else value


def in_each_language(text: str) -> dict[str, str]:
    """A sentence by the code of each language that pages have; of any other text the English alone."""
    if not isinstance(text, Said):
        return {"en": text}
    from django.conf import settings
    from django.utils.translation import override

    found = {}
    for code, _name in settings.LANGUAGES:
        with override(code):
            found[code] = words(text)
    return found


def packed(text: str) -> str:
    """A sentence as JSON, to be kept beside its text; empty for a text that is none, and for one that is too long."""
    found = json.dumps(_pack(text), ensure_ascii=False, separators=(",", ":")) if isinstance(text, Said) else ""
    return found if len(found) <= LONGEST else ""


def _pack(value: Any) -> Any:
    if isinstance(value, Said):
        return {value.template: {name: _pack(inner) for name, inner in value.values.items()}}
    if isinstance(value, tuple | list):
        return [isinstance(value, tuple), *map(_pack, value)]
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def unpacked(found: str, text: str) -> str:
    """The sentence that was packed, if it says just this text; else the text. What is packed may come from anybody."""
    if not found or len(found) > LONGEST:
        return text
    try:
        sentence = _unpack(json.loads(found), _DEEPEST)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return text
    return sentence if isinstance(sentence, Said) and sentence == text else text


def _unpack(value: Any, deepest: int) -> Any:
    if isinstance(value, list):
        parts = [_unpack(inner, deepest - 1) if isinstance(inner, dict) else str(inner) for inner in value[1:]]
        return tuple(parts) if value[0] else parts
    if not isinstance(value, dict):
        return value
    ((template, values),) = value.items()
    if deepest <= 0 or not _PLAIN.fullmatch(template):
        raise ValueError(template)
    return _made(template, {name: _unpack(inner, deepest - 1) for name, inner in values.items()})
