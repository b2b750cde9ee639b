"""YAML event by event, so that size, depth and the growth of aliases are bounded before anything large is built.

Scalars mean what they mean to kubectl (go-yaml's reading of YAML 1.1, then JSON): `yes` and `on` are booleans, `0777`
is octal, `1e3` is 1000, a timestamp stays text and so does `1:30`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from cluster import pointers
from cluster.documents.refusal import MAX_DEPTH, NUL, NotYaml, refuse
from cluster.said import said

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


def read_yaml(text: str, most: int) -> Iterator[tuple[int, Any, dict[str, int]]]:
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
        refuse(
            said("not valid YAML: %(reason)s", reason=reason),
            max(builder.number, 1),
            mark.line + 1 if mark else None,
            error=NotYaml,
        )
    except yaml.reader.ReaderError as fault:
        line = text.count("\n", 0, fault.position) + 1 if isinstance(fault.position, int) else None
        refuse(said("not valid YAML: %(reason)s", reason=fault.reason), max(builder.number, 1), line, error=NotYaml)


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
            refuse(said("the text unfolds to more than %(most)s values", most=self.most), self.number, line)

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
        return frame.pointer + pointers.pointer(step)

    def _open(self, event: Any, line: int) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if mapping else "seq")):
            refuse(said("the tag %(tag)r is not taken; write plain values", tag=event.tag), self.number, line)
        if self._expects_key():
            refuse(said("a key must be text, not a collection"), self.number, line, self.stack[-1].pointer)
        if len(self.stack) >= MAX_DEPTH:
            refuse(said("values are nested more than %(most)s deep", most=MAX_DEPTH), self.number, line)
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
            refuse(said("the alias *%(anchor)s refers to what it stands in", anchor=anchor), self.number, line)
        if anchor not in self.anchors:
            refuse(said("the alias *%(anchor)s has no anchor before it", anchor=anchor), self.number, line)
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
            refuse(
                said("a key must be text; this one is read as %(shown)s: put it in quotes", shown=shown),
                self.number,
                line,
                frame.pointer,
            )
        pointer = frame.pointer + pointers.pointer(value)
        if value in frame.key_lines:
            refuse(
                said("the key %(value)r was given before, on line %(line)s", value=value, line=frame.key_lines[value]),
                self.number,
                line,
                pointer,
            )
        frame.key_lines[value] = line
        self.lines[pointer] = line
        return value

    def _merge(self, value: Any, line: int, frame: _Frame) -> None:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            refuse(said("what << merges must be a mapping or a list of mappings"), self.number, line, frame.pointer)
        frame.merged.extend(sources)

    def _scalar(self, event: Any, line: int) -> Any:
        text, tag = event.value, event.tag
        if "\0" in text:
            refuse(NUL, self.number, line, "" if self._expects_key() else self._pointer())
        if tag in ("!", _TAG + "str") or (tag is None and not event.implicit[0]):
            return text
        value = _resolve(text)
        if (isinstance(value, float) and value in (float("inf"), float("-inf"))) or _NOT_JSON.fullmatch(text):
            refuse(said("%(value)r is no number that JSON can carry", value=text[:40]), self.number, line, self._pointer())
        if tag is None:
            return value
        wanted = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}.get(tag.removeprefix(_TAG))
        if wanted is None:
            refuse(said("the tag %(tag)r is not taken; write plain values", tag=tag), self.number, line)
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):  # type: ignore[arg-type]
            refuse(said("%(value)r is not what its tag %(tag)r says", value=text[:40], tag=tag), self.number, line)
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


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value
