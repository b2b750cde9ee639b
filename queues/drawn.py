"""Bars of the tree as HTML: there are hundreds on a page, so each is written at once."""

from __future__ import annotations

from functools import lru_cache

from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from queues.queries import Bar, amounts


def bar(shown: Bar) -> SafeString:
    """A share bar: what there is none of has no element."""
    layers = [
        ("bor", shown.borrowed),
        ("adm", shown.admitted > shown.allocated),
        ("gua", shown.guarantee),
        ("des", shown.deserved),
    ]
    inner = "".join(f'<i class="{name}"></i>' for name, there in layers if there)
    return SafeString(
        f'<span class="ba-share" role="img" aria-label="{escape(shown.label)}" style="{shown.style}">'
        f'<i class="cap"></i><i class="alc"></i>{inner}</span>'
    )


def figures(shown: Bar, *, asks: bool) -> SafeString:
    """Allocated and deserved in one unit; a dash for what nobody says."""
    if not (shown.allocated or shown.deserved):
        return SafeString('<span class="n ink3">0</span>' if asks else '<span class="n ink3">–</span>')
    held, due, unit = _pair(shown.allocated, shown.deserved, shown.resource, get_language())
    told = due if asks or shown.deserved else "–"
    small = f'<span class="u">{unit}</span>' if unit else ""
    return SafeString(f'<span class="n"><b>{held}</b>/{told}{small}</span>')


@lru_cache(maxsize=4096)
def _pair(held: int, due: int, resource: str, _language: str | None) -> tuple[str, str, str]:
    return amounts((held, due), resource)
