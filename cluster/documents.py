"""Manifests from outside: multi-document YAML or JSON, read safely, with the line of every field.

Scalars mean what they mean to kubectl (go-yaml's reading of YAML 1.1, then JSON): `yes` and `on` are booleans, `0777`
is octal, `1e3` is 1000, a timestamp stays text and so does `1:30`. The text is read event by event, so that size,
depth and the growth of aliases are bounded before anything large is built. Everything refused is a BadRequest whose
field errors name document and line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

import yaml

from cluster.errors import BadRequest, FieldError
from cluster.port import Obj

MAX_NODES = 200_000
MAX_DEPTH = 100

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TRUE = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_NOT_JSON = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INT = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)|(?P<dec>0|[1-9][0-9]*))"
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_TAG = "tag:yaml.org,2002:"
_MERGE = object()
_NUL = "a text holds a NUL character, which neither a process nor a database takes"


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
        parsed = list(_read_yaml(decoded, most))
    except _NotYaml:
        if not decoded.lstrip().startswith(("{", "[")) or not _is_json(decoded):
            raise
        parsed = list(_read_json(decoded, most))
    documents: list[Document] = []
    for number, value, lines in parsed:
        if value is not None:
            for prefix, obj in _flattened(number, value, lines, ""):
                documents.append(Document(len(documents), obj, number, lines, prefix))
    if not documents:
        _refuse("there is no object in the text")
    return documents


def _decoded(text: str | bytes, limit: int) -> str:
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        _refuse(f"the text has {size} bytes; at most {limit} are read")
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        _refuse(f"the text is not UTF-8 (byte {error.start})", line=line)


def _flattened(number: int, value: Any, lines: dict[str, int], prefix: str) -> Iterator[tuple[str, Obj]]:
    """The value, or the items of a List, each with its pointer inside the document."""
    if not isinstance(value, dict):
        what = "a list" if isinstance(value, list) else "text" if isinstance(value, str) else "a single value"
        _refuse(f"an object is a mapping with apiVersion and kind, this is {what}", number, lines.get(prefix), prefix)
    if value.get("kind") != "List":
        yield prefix, value
        return
    items = value.get("items")
    if not isinstance(items, list):
        _refuse("a List has its objects under items", number, lines.get(prefix), f"{prefix}/items")
    for position, item in enumerate(items):
        yield from _flattened(number, item, lines, f"{prefix}/items/{position}")


class _NotYaml(BadRequest):
    """The parser itself gave up; the text may still be JSON."""


def _refuse(
    message: str, document: int | None = None, line: int | None = None, pointer: str = "", error: type[BadRequest] = BadRequest
) -> NoReturn:
    where = ", ".join(filter(None, (f"document {document}" if document else "", f"line {line}" if line else "")))
    said = f"{where}: {message}" if where else message
    raise error(said, [FieldError(pointer, said, "syntax")])


# --- YAML ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Frame:
    """A collection that is being read."""

    value: Any
    pointer: str
    line: int
    anchor: str | None
    counted: int  # nodes read before this one
    key: Any = None
    has_key: bool = False
    key_lines: dict[str, int] = field(default_factory=dict)
    merged: list[Any] = field(default_factory=list)


def _read_yaml(text: str, most: int) -> Iterator[tuple[int, Any, dict[str, int]]]:
    """(document number, value, lines) of each document."""
    builder = _Builder(most)
    try:
        for event in cast(Iterator[Any], yaml.parse(text, Loader=_Loader)):
            if isinstance(event, yaml.DocumentStartEvent):
                builder.start()
            elif isinstance(event, yaml.DocumentEndEvent):
                yield builder.number, builder.root, builder.lines
            else:
                builder.take(event)
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        reason = fault.problem or fault.context or "this cannot be read"
        _refuse(f"not valid YAML: {reason}", max(builder.number, 1), mark.line + 1 if mark else None, error=_NotYaml)
    except yaml.reader.ReaderError as fault:
        line = text.count("\n", 0, fault.position) + 1 if isinstance(fault.position, int) else None
        _refuse(f"not valid YAML: {fault.reason}", max(builder.number, 1), line, error=_NotYaml)


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


class _Builder:
    """Puts parser events together to values, within bounds."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.number = 0
        self.count = 0
        self.start()
        self.number = 0

    def start(self) -> None:
        self.number += 1
        self.root: Any = None
        self.lines: dict[str, int] = {}
        self.stack: list[_Frame] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.open_anchors: set[str] = set()

    def take(self, event: Any) -> None:
        """Read one event, Any since the C parser's events are untyped."""
        line = _line(event)
        if isinstance(event, yaml.ScalarEvent):
            self._grow(1, line)
            value = _MERGE if self._is_merge(event) else self._scalar(event, line)
            if event.anchor:
                self.anchors[event.anchor] = (value, 1)
            self._place(value, line)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(str(event.anchor), line)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._open(event, line)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._close()

    def _grow(self, nodes: int, line: int) -> None:
        self.count += nodes
        if self.count > self.most:
            _refuse(f"the text unfolds to more than {self.most} values", self.number, line)

    def _is_merge(self, event: Any) -> bool:
        return event.value == "<<" and not event.style and self._expects_key()

    def _expects_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].value, dict) and not self.stack[-1].has_key

    def _pointer(self) -> str:
        """Where the next value goes."""
        if not self.stack:
            return ""
        frame = self.stack[-1]
        step = len(frame.value) if isinstance(frame.value, list) else frame.key
        return f"{frame.pointer}/{_escape(step)}"

    def _open(self, event: Any, line: int) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if mapping else "seq")):
            _refuse(f"the tag {event.tag!r} is not taken; write plain values", self.number, line)
        if self._expects_key():
            _refuse("a key must be text, not a collection", self.number, line, self.stack[-1].pointer)
        if len(self.stack) >= MAX_DEPTH:
            _refuse(f"values are nested more than {MAX_DEPTH} deep", self.number, line)
        pointer = self._pointer()
        self.stack.append(_Frame({} if mapping else [], pointer, line, event.anchor, self.count))
        self._grow(1, line)
        if event.anchor:
            self.open_anchors.add(event.anchor)
        self.lines.setdefault(pointer, line)

    def _close(self) -> None:
        frame = self.stack.pop()
        for source in frame.merged:
            for key, value in source.items():
                frame.value.setdefault(key, value)
        if frame.anchor:
            self.open_anchors.discard(frame.anchor)
            self.anchors[frame.anchor] = (frame.value, self.count - frame.counted)
        self._place(frame.value, frame.line)

    def _alias(self, anchor: str, line: int) -> None:
        if anchor in self.open_anchors:
            _refuse(f"the alias *{anchor} refers to what it stands in", self.number, line)
        if anchor not in self.anchors:
            _refuse(f"the alias *{anchor} has no anchor before it", self.number, line)
        value, size = self.anchors[anchor]
        self._grow(size, line)
        self._place(_copy(value), line)

    def _place(self, value: Any, line: int) -> None:
        """Put a finished value where it belongs: the root, a list's end, or a mapping's key or value."""
        if not self.stack:
            self.root = value
            self.lines.setdefault("", line)
            return
        frame = self.stack[-1]
        if isinstance(frame.value, list):
            self.lines.setdefault(f"{frame.pointer}/{len(frame.value)}", line)
            frame.value.append(value)
        elif not frame.has_key:
            frame.key = value if value is _MERGE else self._key(value, line, frame)
            frame.has_key = True
        else:
            if frame.key is _MERGE:
                self._merge(value, line, frame)
            else:
                frame.value[frame.key] = value
            frame.has_key = False

    def _key(self, value: Any, line: int, frame: _Frame) -> str:
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            shown = {None: "null", True: "true", False: "false"}.get(value, value) if not isinstance(value, (dict, list)) else "…"
            _refuse(f"a key must be text; this one is read as {shown}: put it in quotes", self.number, line, frame.pointer)
        pointer = f"{frame.pointer}/{_escape(value)}"
        if value in frame.key_lines:
            _refuse(f"the key {value!r} was given before, on line {frame.key_lines[value]}", self.number, line, pointer)
        frame.key_lines[value] = line
        self.lines[pointer] = line
        return value

    def _merge(self, value: Any, line: int, frame: _Frame) -> None:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            _refuse("what << merges must be a mapping or a list of mappings", self.number, line, frame.pointer)
        frame.merged.extend(sources)

    def _scalar(self, event: Any, line: int) -> Any:
        text, tag = event.value, event.tag
        if "\0" in text:
            _refuse(_NUL, self.number, line, "" if self._expects_key() else self._pointer())
        if tag in ("!", _TAG + "str") or (tag is None and not event.implicit[0]):
            return text
        value = _resolve(text)
        if (isinstance(value, float) and value in (float("inf"), float("-inf"))) or _NOT_JSON.fullmatch(text):
            _refuse(f"{text[:40]!r} is no number that JSON can carry", self.number, line, self._pointer())
        if tag is None:
            return value
        wanted = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}.get(tag.removeprefix(_TAG))
        if wanted is None:
            _refuse(f"the tag {tag!r} is not taken; write plain values", self.number, line)
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):  # type: ignore[arg-type]
            _refuse(f"{text[:40]!r} is not what its tag {tag!r} says", self.number, line)
        return value


def _resolve(text: str) -> Any:
    """What an unquoted scalar means to kubectl."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text[0] not in "+-.0123456789" or len(text) > 400:
        return text
    plain = text.replace("_", "")
    if match := _INT.fullmatch(plain):
        base, digits = next((b, match[g]) for g, b in (("hex", 16), ("bin", 2), ("oct", 8), ("dec", 10)) if match[g] is not None)
        number = int(match["sign"] + digits, base)
        return number if -(2**63) <= number < 2**64 else float(number)
    if _FLOAT.fullmatch(plain):
        value = float(plain)
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    return text


def _escape(step: Any) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value


# --- JSON that YAML does not read (surrogate pairs, tabs), without lines ---------------------------------------------


def _is_json(text: str) -> bool:
    try:
        json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return False
    return True


def _read_json(text: str, most: int) -> Iterator[tuple[int, Any, dict[str, int]]]:
    decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant, parse_int=_json_int)
    position, number = len(text) - len(text.lstrip()), 0
    while position < len(text):
        number += 1
        try:
            value, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            _refuse(f"not valid JSON: {error.msg}", number, error.lineno)
        except RecursionError:
            _refuse(f"values are nested more than {MAX_DEPTH} deep", number)
        _bounded(value, number, most)
        yield number, value, {"": text.count("\n", 0, position) + 1}
        position = end + len(text[end:]) - len(text[end:].lstrip())


def _json_int(digits: str) -> int | float:
    number = int(digits) if len(digits) <= 40 else 2**64
    return number if -(2**63) <= number < 2**64 else float(digits)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        _refuse(f"the key {twice!r} is given twice in one object")
    return value


def _no_constant(text: str) -> NoReturn:
    _refuse(f"{text!r} is no number that JSON can carry")


def _bounded(value: Any, number: int, most: int) -> None:
    """Refuse what is too deep, too much, or text that no file can hold (half a surrogate pair)."""
    waiting, count = [(value, 1)], 0
    while waiting:
        found, depth = waiting.pop()
        count += 1
        if depth > MAX_DEPTH:
            _refuse(f"values are nested more than {MAX_DEPTH} deep", number)
        if count > most:
            _refuse(f"the text unfolds to more than {most} values", number)
        if isinstance(found, dict):
            waiting.extend((inner, depth + 1) for pair in found.items() for inner in pair)
        elif isinstance(found, list):
            waiting.extend((inner, depth + 1) for inner in found)
        elif isinstance(found, str):
            if "\0" in found:
                _refuse(_NUL, number)
            try:
                found.encode()
            except UnicodeEncodeError:
                _refuse("a text holds half of a surrogate pair", number)
        elif isinstance(found, float) and found in (float("inf"), float("-inf")):
            _refuse("a number is beyond what JSON can carry", number)
