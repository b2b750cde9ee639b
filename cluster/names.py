"""Names as Kubernetes spells them (RFC 1123), and what to say to whom a name was refused."""

from __future__ import annotations

import re

from cluster.said import said

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
LABEL_ADVICE = said("use at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit")
JOB_ADVICE = said("use at most 63 lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit")
SUBDOMAIN_ADVICE = said("use at most 253 lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit")


def is_dns_label(text: str) -> bool:
    """At most 63 lower-case letters, digits and hyphens, beginning and ending with a letter or digit."""
    return len(text) <= 63 and _DNS_LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Such words joined by dots, at most 253 characters in all; Kubernetes sets no limit for each word."""
    return len(text) <= 253 and _DNS_SUBDOMAIN.fullmatch(text) is not None
