"""Amounts and sentences for people: units as one reads them, and texts that come in several languages."""

from __future__ import annotations

import os
from collections.abc import Mapping

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def in_own_language(text: Mapping[str, str] | None) -> str:
    """A text in the language of LC_ALL, LC_MESSAGES or LANG, else in English."""
    if not text:
        return ""
    asked = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "")
    key = "zh-hans" if asked.lower().startswith("zh") else "en"
    return text.get(key) or text.get("en") or ""


def is_bytes(resource: str) -> bool:
    """Whether amounts of a resource are in bytes."""
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")


def amount(units: int, resource: str) -> str:
    """An amount in smallest units as people write it: `12` CPUs, `3.5Gi`, `8` GPUs."""
    if is_bytes(resource):
        value, step = float(units), 0
        while abs(value) >= 1024 and step < len(_BINARY) - 1:
            value, step = value / 1024, step + 1
        return f"{_short(value)}{_BINARY[step]}"
    return _short(units if resource == "pods" else units / 1000)


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.1f}"


def is_gpu(resource: str) -> bool:
    """Whether a resource is whole GPUs of some maker."""
    return resource.endswith("/gpu") or ("/gpu-" in resource and "memory" not in resource)
