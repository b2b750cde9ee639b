"""A manifest being written: its text is the truth, and a form edits single values in it.

An edit keeps what it does not touch: comments, order, quoting, unknown fields, anchors. Replacing one scalar by another
changes those characters of the text and nothing else; whatever changes the shape goes through a round-trip of the tree.
"""

from __future__ import annotations

import copy
import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import RoundTripConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from cluster import documents
from cluster.errors import BadRequest
from cluster.said import said

Path = tuple[str | int, ...]
_BROKEN = (ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError)
"""What ruamel raises where a value is not what its tag promises, such as `!!timestamp x` or `!!omap {}`."""


class DraftError(ValueError):
    """The text is no YAML that can be edited; `line` counts from 1, None when the fault has no place."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class Draft:
    """One YAML document as text and as a tree. `root` is only to be read; change it with `set` and `remove`."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.root = self._parse()
        self._is_behind = False  # whether scalars of the tree were changed without reading how the text writes them

    def _parse(self) -> CommentedMap:
        try:
            root = _round_trip(self.text).load(self.text)
        except YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            text = getattr(error, "problem", None) or str(error).splitlines()[0]
            raise DraftError(str(text), mark.line + 1 if mark else None) from error
        except RecursionError as error:
            raise DraftError(said("nested too deeply")) from error
        except _BROKEN as error:
            raise DraftError(said("a value cannot be read: %(error)s", error=str(error)[:100])) from error
        if root is None:
            return CommentedMap()
        if not isinstance(root, CommentedMap):
            raise DraftError(said("a manifest is a mapping (apiVersion, kind, metadata, spec)"), 1)
        return root

    def get(self, path: Path, default: Any = None) -> Any:
        """The value at a path, or `default` when any step is missing."""
        node: Any = self.root
        for step in path:
            if not _holds(node, step):
                return default
            node = node[step]
        return node

    def set(self, path: Path, value: Any) -> None:
        """Put `value` at a path, making the mappings on the way. Nothing happens when it is there already."""
        old = self.get(path, _MISSING)
        if old is not _MISSING and type(old) is type(value) and old == value:
            return
        if self._splice(path, value):
            return
        self._reshape(lambda: self._put(path, value))

    def append(self, path: Path, value: Any) -> None:
        """Add `value` to the sequence at a path, making it when it is missing."""

        def change() -> None:
            items = self.get(path)
            if not isinstance(items, CommentedSeq):
                self._put(path, CommentedSeq())
            self._owned(path).append(_commented(value))

        self._reshape(change)

    def remove(self, path: Path) -> None:
        """Take a path away, and with it the mappings and sequences that become empty. A missing path is no fault."""
        if self.get(path, _MISSING) is _MISSING:
            return

        def change() -> None:
            steps = path
            while steps:
                parent = self._owned(steps[:-1])
                del parent[steps[-1]]
                if parent or len(steps) < 3:
                    break
                steps = steps[:-1]

        self._reshape(change)

    def _reshape(self, change: Callable[[], None]) -> None:
        if self._is_behind:
            self.root = self._parse()
        change()
        out = io.StringIO()
        _round_trip(self.text).dump(self.root, out)
        self.text = out.getvalue()
        self.root = self._parse()
        self._is_behind = False

    def _put(self, path: Path, value: Any) -> None:
        parent = self._owned(path[:-1])
        step = path[-1]
        if isinstance(parent, CommentedSeq) and isinstance(step, int) and step == len(parent):
            parent.append(_commented(value))
        else:
            parent[step] = _commented(value)

    def _owned(self, path: Path) -> Any:
        """The container at a path, made if missing, and copied off first where an alias shares it with other places."""
        shared = _shared(self.root)
        node: Any = self.root
        for step in path:
            child = node[step] if _holds(node, step) else None
            if not isinstance(child, CommentedMap | CommentedSeq):
                child = node[step] = CommentedMap()
            elif id(child) in shared or not _own_key(node, step):
                child = node[step] = _without_anchor(copy.deepcopy(child))
                shared = _shared(self.root)
            node = child
        return node

    def _splice(self, path: Path, value: Any) -> bool:
        """Replace the characters of one plain or quoted scalar on one line; False when the value is no such scalar."""
        if isinstance(value, dict | list) or (isinstance(value, str) and "\n" in value):
            return False
        node = _scalar(self.text, path)
        if node is None or node.style in ("|", ">") or node.start_mark.line != node.end_mark.line:
            return False
        start, end = node.start_mark.index, node.end_mark.index
        if start == end:
            return False
        text = self.text[:start] + _scalar_text(value) + self.text[end:]
        before = self.text
        self.text = text
        if self._follow(path):
            return True
        try:
            self.root = self._parse()
        except DraftError:
            self.text = before
            self.root = self._parse()
            return False
        return True

    def _follow(self, path: Path) -> bool:
        """Bring one scalar of the tree up to the text, at a tenth of the cost of reading it all; False if it cannot be."""
        try:
            found: Any = documents.load(self.text)
        except BadRequest:
            return False
        if len(found) != 1 or not path:
            return False
        found, node = found[0].obj, self.root
        for step in path[:-1]:
            found, node = found[step], node[step]
        if not _own_key(node, path[-1]) or isinstance(found[path[-1]], dict | list):
            return False
        node[path[-1]] = found[path[-1]]
        self._is_behind = True
        return True


_MISSING = object()


class _Float(float):
    """A float that remembers how it was written, since printing it again may round."""

    text: str


class _Constructor(RoundTripConstructor):
    """Reads what only looks like a number, such as `._` and `0x_`, as the text that it is to kubectl."""

    def construct_yaml_int(self, node: Any) -> Any:
        try:
            return super().construct_yaml_int(node)
        except (IndexError, ValueError):
            return self._text(node)

    def construct_yaml_float(self, node: Any) -> Any:
        try:
            value = _Float(yaml.safe_load(node.value))
        except ValueError:
            return self._text(node)
        value.text = node.value
        return value

    def _text(self, node: Any) -> str:
        if self.resolver.resolve(type(node), node.value, (True, False)) != node.ctag:
            raise ValueError(said("%(value)r is not what its tag says", value=node.value))
        return str(node.value)


class _Representer(RoundTripRepresenter):
    def represent_as_written(self, value: _Float) -> Any:
        return self.represent_scalar("tag:yaml.org,2002:float", value.text)


_Constructor.add_constructor("tag:yaml.org,2002:int", _Constructor.construct_yaml_int)
_Constructor.add_constructor("tag:yaml.org,2002:float", _Constructor.construct_yaml_float)
_Representer.add_representer(_Float, _Representer.represent_as_written)


def _round_trip(text: str) -> YAML:
    """A round-trip reader and writer that indents as the text does."""
    parser = YAML(typ="rt")
    parser.Constructor, parser.Representer = _Constructor, _Representer
    parser.preserve_quotes = True
    parser.width = 4096
    dash = _dash_offset(text)
    parser.indent(mapping=2, sequence=dash + 2, offset=dash)
    return parser


_SEQUENCE = re.compile(r"^( *)(?:- )?[^\s#-][^\n]*:[ ]*(?:#[^\n]*)?\n(?:[ ]*(?:#[^\n]*)?\n)*( *)- ", re.MULTILINE)


def _dash_offset(text: str) -> int:
    """How far the first sequence's dashes stand to the right of their key."""
    found = _SEQUENCE.search(text)
    if found is None:
        return 0
    key = len(found[1]) + (2 if found[0].lstrip(" ").startswith("- ") else 0)
    return max(0, min(4, len(found[2]) - key))


def _scalar(text: str, path: Path) -> yaml.ScalarNode | None:
    """The scalar node at a path with its place in the text; None when it is none, or an alias shares it with other places."""
    try:
        root = node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    shared = _shared_nodes(root) if "*" in text else frozenset()
    for step in path:
        if isinstance(node, yaml.MappingNode):
            node = next((v for k, v in node.value if k.value == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and 0 <= step < len(node.value):
            node = node.value[step]
        else:
            return None
        if node is None or id(node) in shared:
            return None
    plain = isinstance(node, yaml.ScalarNode) and text[node.start_mark.index] not in "&!"
    return node if plain else None


def _shared_nodes(root: yaml.Node | None) -> set[int]:
    """Nodes that more than one place points at."""
    stack: list[Any] = [root]
    met: set[int] = set()
    shared: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in met:
            shared.add(id(node))
            continue
        met.add(id(node))
        if isinstance(node, yaml.MappingNode):
            stack.extend(value for _, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            stack.extend(node.value)
    return shared


def _scalar_text(value: Any) -> str:
    return value if isinstance(value, str) and _plain(value) else json.dumps(value, ensure_ascii=False)


def _plain(text: str) -> bool:
    """Whether the text needs no quotes: every reader of the manifest takes it for exactly this text, also inside brackets."""
    try:
        return documents.load(f"a: [{text}]")[0].obj == {"a": [text]} and documents.load(f"a: {text}")[0].obj == {"a": text}
    except (BadRequest, IndexError):
        return False


def _commented(value: Any) -> Any:
    """Plain dicts and lists as ruamel's own, so that later edits find them; text quoted where it must be."""
    if isinstance(value, dict):
        return CommentedMap((key, _commented(item)) for key, item in value.items())
    if isinstance(value, list):
        return CommentedSeq(_commented(item) for item in value)
    if isinstance(value, str) and "\n" in value and not documents.RARE_BREAKS.search(value):
        return LiteralScalarString(value)
    if isinstance(value, str) and not _plain(value):
        return DoubleQuotedScalarString(value)
    return value


def _holds(node: Any, step: str | int) -> bool:
    if isinstance(node, CommentedMap):
        return step in node
    return isinstance(node, CommentedSeq) and isinstance(step, int) and 0 <= step < len(node)


def _own_key(node: Any, step: str | int) -> bool:
    """False for a key that a mapping only has through a merge (`<<`)."""
    return not isinstance(node, CommentedMap) or not node.merge or step in dict.keys(node)


def _containers(root: Any) -> Iterator[Any]:
    """Every mapping and sequence, as often as something points at it; each is entered once only."""
    stack, entered = [root], set()
    while stack:
        node = stack.pop()
        if not isinstance(node, CommentedMap | CommentedSeq):
            continue
        yield node
        if id(node) not in entered:
            entered.add(id(node))
            stack.extend(node.values() if isinstance(node, CommentedMap) else node)


def _shared(root: Any) -> set[int]:
    """Containers that more than one place points at."""
    met: set[int] = set()
    shared: set[int] = set()
    for node in _containers(root):
        (shared if id(node) in met else met).add(id(node))
    return shared


def _without_anchor(node: Any) -> Any:
    for part in _containers(node):
        part.yaml_set_anchor(None)
    return node
