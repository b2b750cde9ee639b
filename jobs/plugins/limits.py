"""What Kubernetes and Linux allow at most, as far as plugins run into it."""

from __future__ import annotations

from cluster.names import LABEL_ADVICE, is_dns_label
from cluster.said import said

STRING_LIMIT = 131_071
"""Bytes of one variable, its name included, with which Linux starts a program (MAX_ARG_STRLEN less the end mark)."""

MOST_DATA = 1_048_576
"""Bytes that a ConfigMap or a Secret holds."""


def too_long(variable: str, length: int, instead: str) -> str:
    """What to say of a variable that no program can be given; empty when it can."""
    if len(variable) + 1 + length <= STRING_LIMIT:
        return ""
    return said(
        "%(variable)s would have %(length)s bytes, with which Linux starts no program: %(instead)s",
        variable=variable,
        length=length,
        instead=instead,
    )


def is_service_name(text: str) -> bool:
    """A DNS label that begins with a letter."""
    return is_dns_label(text) and text[0].isalpha()


def no_service_name(text: str) -> str:
    """What to say of a name that no Service can have."""
    return said(
        "%(text)r is no name for a Service, which the plugin makes: %(advice)s, the first a letter",
        text=text,
        advice=LABEL_ADVICE,
    )
