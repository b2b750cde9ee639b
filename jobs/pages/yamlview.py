"""A manifest as YAML with its parts marked for colour, line by line; escaped, so that it is safe in a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from cluster import documents

_LINE = re.compile(r"^(?P<indent>[ ]*(?:- )*)(?P<key>[^\s:#'\"][^:]*|'[^']*'|\"[^\"]*\")(?P<colon>:)(?P<rest>\s.*|)$")
_NUMBER = re.compile(r"^-?\d+(\.\d+)?$|^(true|false|null|~)$")
_ITEM = re.compile(r"^(?P<indent>[ ]*(?:- )+)(?P<rest>.*)$")
_BLOCK = re.compile(r":\s*[|>][+-]?\d*\s*$")


def dump(obj: Any) -> str:
    """The manifest as text, keys in their own order."""
    return documents.dump(obj, width=110)


def lines(text: str) -> Iterator[SafeString]:
    """Each line as HTML: keys `.k`, words `.s`, numbers `.n`."""
    block: int | None = None  # the indent of a block scalar's key: deeper lines are text, not YAML
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip(" "))
        if block is not None and (indent > block or not line.strip()):
            yield mark_safe(f'<span class="s">{escape(line)}</span>')  # noqa: S308
            continue
        block = indent if _BLOCK.search(line) else None
        yield _line(line)


def _line(line: str) -> SafeString:
    if found := _LINE.match(line):
        key = f'{found["indent"]}<span class="k">{escape(found["key"])}</span>:'
        return mark_safe(key + _value(found["rest"]))  # noqa: S308
    if found := _ITEM.match(line):
        return mark_safe(found["indent"] + _value(found["rest"]))  # noqa: S308
    return mark_safe(_value(line))  # noqa: S308


def _value(text: str) -> str:
    bare = text.strip()
    if not bare:
        return ""
    space = text[: len(text) - len(text.lstrip())]
    return f'{space}<span class="{"n" if _NUMBER.match(bare) else "s"}">{escape(bare)}</span>'
