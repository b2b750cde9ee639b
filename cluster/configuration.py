"""Admission of what pods are configured by: ConfigMaps and Secrets. What a fault says of a Secret never repeats a value."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from cluster.admission import PlainRules, Request, Rules
from cluster.errors import FieldError
from cluster.kinds import CONFIG_MAP, SECRET, Kind
from cluster.pointers import pointer
from cluster.port import Obj
from cluster.said import said
from cluster.validation import Faults, Meta, Shape, check_shape

MOST_BYTES = 1_048_576
"""What the data of one object may take."""

_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_KEY_ADVICE = said("use at most 253 letters, digits, '-', '_' and '.'")


class _Held(Shape):
    metadata: Meta
    immutable: bool | None = None


class ConfigurationRules(PlainRules):
    """Keys that are file names, values that are what they say, not too much of them, and what is immutable stays.

    `texts` and `encoded` are the fields that hold plain text, and base64.
    """

    def __init__(self, texts: tuple[str, ...], encoded: tuple[str, ...]) -> None:
        self._texts, self._encoded = texts, encoded

    def default(self, request: Request) -> None:
        """A Secret without a type holds what its maker pleases."""
        if request.kind == SECRET and not request.obj.get("type"):
            request.obj["type"] = "Opaque"

    def check(self, request: Request) -> list[FieldError]:
        """Shapes, then keys, values and sizes, then what must not change."""
        obj, faults = request.obj, Faults(check_shape(_Held, request.obj))
        if request.kind == SECRET and not isinstance(obj.get("type"), str):
            faults.add("/type", said("must be text"), "type")
        total, seen = 0, set[str]()
        for field in (*self._texts, *self._encoded):
            for key, size, fault in self._values(obj, field):
                if fault is not None:
                    faults.add(fault.pointer, fault.message, fault.code)
                elif key in seen:
                    faults.add(
                        pointer(field, key), said("the key %(key)r is used twice: give each value its own", key=key), "duplicate"
                    )
                seen.add(key)
                total += size
        if total > MOST_BYTES:
            where = f"/{(*self._texts, *self._encoded)[0]}"
            faults.add(
                where,
                said("the data takes %(total)s bytes together, and %(most)s is the most", total=total, most=MOST_BYTES),
                "range",
            )
        if request.old is not None:
            self._check_change(obj, request.old, faults)
        return faults

    def _values(self, obj: Obj, field: str) -> Iterator[tuple[str, int, FieldError | None]]:
        """Of each value in a field its key, its size in bytes, and what is wrong with it."""
        found = obj.get(field)
        if found is None:
            return
        if not isinstance(found, dict):
            yield "", 0, FieldError(f"/{field}", said("must be a mapping of keys to values"), "type")
            return
        for key, value in found.items():
            where = pointer(field, key)
            if not _KEY.fullmatch(key) or key in (".", "..") or key.startswith(".."):
                yield (
                    key,
                    0,
                    FieldError(
                        where,
                        said("%(key)r is no key: %(advice)s, not '..' in front", key=key[:60], advice=_KEY_ADVICE),
                        "format",
                    ),
                )
            elif value is None:
                yield key, 0, None
            elif not isinstance(value, str):
                yield (
                    key,
                    0,
                    FieldError(where, said("must be text, not %(value)s: put it in quotes", value=_named(value)), "type"),
                )
            elif field in self._texts:
                yield key, len(value.encode()), None
            else:
                yield _decoded(key, value, where)

    def _check_change(self, obj: Obj, old: Obj, faults: Faults) -> None:
        if old.get("type") != obj.get("type"):
            faults.add("/type", said("cannot change: delete the object and make another"), "immutable")
        if not old.get("immutable"):
            return
        for field in ("immutable", *self._texts, *self._encoded):
            if (old.get(field) or None) != (obj.get(field) or None):
                faults.add(f"/{field}", said("cannot change: the object is immutable; delete it and make another"), "immutable")


def _decoded(key: str, value: str, where: str) -> tuple[str, int, FieldError | None]:
    try:
        return key, len(base64.b64decode(value, validate=True)), None
    except (binascii.Error, ValueError):
        return (
            key,
            0,
            FieldError(where, said("must be base64; plain text stands under stringData or, in a ConfigMap, data"), "format"),
        )


def _named(value: Any) -> str:
    if isinstance(value, bool):
        return said("true or false")
    return (
        said("a number") if isinstance(value, int | float) else said("a list") if isinstance(value, list) else said("a mapping")
    )


RULES: dict[Kind, Rules] = {
    CONFIG_MAP: ConfigurationRules(texts=("data",), encoded=("binaryData",)),
    SECRET: ConfigurationRules(texts=("stringData",), encoded=("data",)),
}
