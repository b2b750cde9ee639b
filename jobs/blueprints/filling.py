"""Filling out a job's text: `${{ workers }}` stands for a parameter, `${{ workers + 1 }}` for a sum, difference or product.

A scalar that is nothing but one placeholder becomes the value itself, a number stays a number; inside a longer text the value
is written into it. The tree that comes out is the truth; the text keeps the comments where that says the same.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from cluster import documents
from cluster.errors import ApiError, FieldError
from cluster.pointers import pointer
from cluster.port import Obj
from cluster.said import said, told

HOLE = re.compile(r"\$\{\{([^{}]{0,200})\}\}")
LARGEST = 10**15
"""What a number may be at most, on either side of zero."""


class FillError(ValueError):
    """A placeholder that cannot be worked out."""


def expression_names(text: str) -> set[str]:
    """The parameters that a placeholder's inside names. Raises FillError when it is no expression."""
    return {node.id for node in ast.walk(_parsed(text)) if isinstance(node, ast.Name)}


def _parsed(text: str) -> ast.expr:
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FillError(said("%(text)r is no parameter, nor a sum, difference or product of some", text=text.strip())) from error
    for node in ast.walk(tree):
        known = isinstance(node, ast.Name | ast.BinOp | ast.Add | ast.Sub | ast.Mult | ast.Load) or (
            isinstance(node, ast.Constant) and type(node.value) in (int, float)
        )
        if not known:
            raise FillError(said("%(text)r is no parameter, nor a sum, difference or product of some", text=text.strip()))
    return tree


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """What a placeholder's inside is worth. A parameter without a value is an empty text by itself."""
    return _value(_parsed(text), values)


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return _bounded(node.value)
    if isinstance(node, ast.Name):
        return _bounded(values.get(node.id, ""))
    assert isinstance(node, ast.BinOp)
    left, right = _value(node.left, values), _value(node.right, values)
    for side in (left, right):
        if isinstance(side, bool) or not isinstance(side, int | float):
            raise FillError(
                said("%(text)s reckons with %(value)s, which is no number", text=ast.unparse(node), value=json.dumps(side))
            )
    return _bounded(
        left + right if isinstance(node.op, ast.Add) else left - right if isinstance(node.op, ast.Sub) else left * right
    )


def _bounded(value: Any) -> Any:
    """A value, unless it is a number that is too large, or none."""
    if isinstance(value, int | float) and not abs(value) <= LARGEST:
        raise FillError(said("a number is larger than %(most)s", most=LARGEST))
    return value


def fill(text: str, values: Mapping[str, Any]) -> tuple[str, Obj]:
    """The text filled out, and the same as a tree. Raises FillError."""
    template = documents.load(text)[0].obj
    tree: Obj = _filled(template, values)
    spliced = _spliced(text, values)
    try:
        same = spliced is not None and [each.obj for each in documents.load(spliced)] == [tree]
    except ApiError:
        same = False
    return (spliced, tree) if same and spliced is not None else (documents.dump(tree), tree)


def _filled(node: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(node, dict):
        return {key: _filled(item, values) for key, item in node.items()}
    if isinstance(node, list):
        return [_filled(item, values) for item in node]
    return _filled_text(node, values) if isinstance(node, str) else node


def _filled_text(text: str, values: Mapping[str, Any]) -> Any:
    whole = HOLE.fullmatch(text.strip())
    if whole and text.strip() == text:
        return evaluate(whole[1], values)
    return HOLE.sub(lambda hole: _written(evaluate(hole[1], values)), text)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _spliced(text: str, values: Mapping[str, Any]) -> str | None:
    """The text with each scalar that has placeholders replaced in its place; None where that cannot be done."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return None
    for node in sorted(_scalars(root), key=lambda each: -each.start_mark.index):
        start, end = node.start_mark.index, node.end_mark.index
        raw = text[start:end]
        if node.style in ("|", ">"):
            new = HOLE.sub(lambda hole: _written(evaluate(hole[1], values)), raw)
        else:
            value = _filled_text(node.value, values)
            new = value if isinstance(value, str) and _is_plain(value) else json.dumps(value, ensure_ascii=False)
        text = text[:start] + new + text[end:]
    return text


def _scalars(root: yaml.Node | None) -> Iterator[yaml.ScalarNode]:
    stack, met = [root], set()
    while stack:
        node = stack.pop()
        if node is None or id(node) in met:
            continue
        met.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            if HOLE.search(node.value):
                yield node
        elif isinstance(node, yaml.MappingNode):
            stack += [value for _key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            stack += node.value


def _is_plain(text: str) -> bool:
    """Whether the text stands for itself without quotes."""
    if "\n" in text or not text:
        return False
    try:
        return documents.load(f"a: [{text}]")[0].obj == {"a": [text]} and documents.load(f"a: {text}")[0].obj == {"a": text}
    except (ApiError, IndexError):
        return False


def hole_faults(job: Any, names: frozenset[str], where: str = "") -> Iterator[FieldError]:
    """Placeholders that name no parameter or cannot be read, and those in keys, where nothing is filled in."""
    if isinstance(job, dict):
        for key, item in job.items():
            if HOLE.search(str(key)):
                yield FieldError(where + pointer(key), said("a placeholder cannot be a key"), "forbidden")
            yield from hole_faults(item, names, where + pointer(key))
    elif isinstance(job, list):
        for index, item in enumerate(job):
            yield from hole_faults(item, names, where + pointer(index))
    elif isinstance(job, str):
        for hole in HOLE.finditer(job):
            try:
                unknown = sorted(expression_names(hole[1]) - names)
            except FillError as error:
                yield FieldError(where, told(error), "format")
                continue
            for name in unknown:
                yield FieldError(
                    where,
                    said("%(name)r is no parameter: there are %(names)s", name=name, names=", ".join(sorted(names)) or "none"),
                    "not_found",
                )
        if job.count("${{") != len(HOLE.findall(job)):
            yield FieldError(where, said("a placeholder is written ${{ name }}"), "format")
