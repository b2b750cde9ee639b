"""Which regular expressions a blueprint may ask of a text: those whose time is bounded, whatever the text."""

from __future__ import annotations

import re
from typing import Any

LONGEST_TEXT = 4096
"""Characters of a parameter's text."""

_WITH_PATTERN = 512
"""Characters of a text that a pattern is tried on."""

_STEPS = 300_000
_TOGETHER = 2_000 * _STEPS


def pattern_fault(pattern: str) -> str:
    """What is wrong with it; empty when nothing is."""
    try:
        parsed = re._parser.parse(pattern)  # type: ignore[attr-defined]
    except (re.error, OverflowError, RecursionError) as error:
        return f"is no regular expression: {error}"
    if _cost(parsed, repeated=False) > _STEPS:
        return "could take very long on some texts: repeat less, and nothing inside of what is repeated"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is no regular expression: {error}"
    return ""


def together_fault(patterns: list[str]) -> str:
    """What is wrong with the patterns of one blueprint, each right by itself: all are tried in one request."""
    if sum(map(_work, patterns)) > _TOGETHER:
        return "the patterns could take very long together: begin them with ^, or repeat less in them"
    return ""


def _work(pattern: str) -> float:
    """Steps of a search: what does not begin with ^ is tried from every place."""
    parsed = re._parser.parse(pattern)  # type: ignore[attr-defined]
    is_anchored = bool(parsed) and str(parsed[0][0]) == "AT" and str(parsed[0][1]).startswith("AT_BEGINNING")
    return _cost(parsed, repeated=False) * (1 if is_anchored else _WITH_PATTERN)


def matches(pattern: str, text: str) -> bool:
    """Whether the text has the pattern somewhere in it; a text that is too long for a pattern has not."""
    return len(text) <= _WITH_PATTERN and re.search(pattern, text) is not None


def _cost(parsed: Any, *, repeated: bool) -> float:
    """An upper bound for how often the matcher may have to try again; endless for repeats or choices inside a repeat."""
    cost = 1.0
    for operator, value in parsed:
        name = str(operator)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _least, most, inner = value
            most = min(int(most), _WITH_PATTERN)
            if (most > 1 or value[0] < most) and repeated:
                return float("inf")
            within = _cost(inner, repeated=repeated or most > 1)
            cost *= most * within if most > 1 else within + (1 - int(value[0]))  # what may be absent is tried both ways
        elif name == "BRANCH":
            if repeated:
                return float("inf")
            cost *= sum(_cost(branch, repeated=repeated) for branch in value[1])
        elif name == "SUBPATTERN":
            cost *= _cost(value[3], repeated=repeated)
        elif name in ("ASSERT", "ASSERT_NOT"):
            cost *= _cost(value[1], repeated=repeated)
        elif name in ("GROUPREF", "GROUPREF_EXISTS", "ATOMIC_GROUP"):
            return float("inf")
    return cost
