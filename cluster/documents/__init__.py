"""Manifests from outside: multi-document YAML or JSON, read safely, with the line of every field; and written.

Everything refused is a BadRequest whose field errors name document and line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cluster.documents.from_json import is_json, read_json
from cluster.documents.from_yaml import read_yaml
from cluster.documents.refusal import MAX_NODES, NotYaml, refuse
from cluster.documents.to_yaml import RARE_BREAKS, dump
from cluster.port import Obj
from cluster.said import said

__all__ = ["MAX_NODES", "RARE_BREAKS", "Document", "dump", "load", "load_json"]


@dataclass(frozen=True, slots=True)
class Document:
    """One object. `index` is its place among all objects of the text, `document` the YAML document it stood in, from 1."""

    index: int
    obj: Obj
    document: int = 1
    _lines: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    _prefix: str = field(default="", repr=False, compare=False)

    def line_of(self, pointer: str) -> int | None:
        """The line (from 1) of the field at a JSON pointer, or of the nearest thing around it; None when not known."""
        full = self._prefix + pointer
        while full not in self._lines and full:
            full = full.rpartition("/")[0]
        return self._lines.get(full)


def load(text: str | bytes, *, limit: int = 1_048_576, most: int = MAX_NODES) -> list[Document]:
    """The objects of a text, `kind: List` taken apart. At most `limit` bytes and `most` values. Raises BadRequest."""
    decoded = _decoded(text, limit)
    try:
        parsed = list(read_yaml(decoded, most))
    except NotYaml:
        if not decoded.lstrip().startswith(("{", "[")) or not is_json(decoded):
            raise
        parsed = list(read_json(decoded, most))
    documents: list[Document] = []
    for number, value, lines in parsed:
        if value is not None:
            for prefix, obj in _flattened(number, value, lines, ""):
                documents.append(Document(len(documents), obj, number, lines, prefix))
    if not documents:
        refuse(said("there is no object in the text"))
    return documents


def load_json(text: bytes, *, limit: int = 1_048_576, most: int = MAX_NODES) -> Any:
    """The one value of a JSON text that is no manifest, within the same bounds. Raises BadRequest."""
    values = [value for _number, value, _lines in read_json(_decoded(text, limit), most)]
    if len(values) != 1:
        refuse(said("give one JSON value, not %(count)s", count=len(values)))
    return values[0]


def _decoded(text: str | bytes, limit: int) -> str:
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        refuse(said("the text has %(size)s bytes; at most %(limit)s are read", size=size, limit=limit))
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        refuse(said("the text is not UTF-8 (byte %(start)s)", start=error.start), line=line)


def _flattened(number: int, value: Any, lines: dict[str, int], prefix: str) -> Iterator[tuple[str, Obj]]:
    """The value, or the items of a List, each with its pointer inside the document."""
    if not isinstance(value, dict):
        what = said("a list") if isinstance(value, list) else said("text") if isinstance(value, str) else said("a single value")
        refuse(
            said("an object is a mapping with apiVersion and kind, this is %(what)s", what=what),
            number,
            lines.get(prefix),
            prefix,
        )
    if value.get("kind") != "List":
        yield prefix, value
        return
    items = value.get("items")
    if not isinstance(items, list):
        refuse(said("a List has its objects under items"), number, lines.get(prefix), f"{prefix}/items")
    for position, item in enumerate(items):
        yield from _flattened(number, item, lines, f"{prefix}/items/{position}")
