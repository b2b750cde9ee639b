"""JSON that YAML does not read (surrogate pairs, tabs), without the lines of its fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from cluster.documents.refusal import MAX_DEPTH, NUL, refuse
from cluster.said import said


def is_json(text: str) -> bool:
    """Whether a text begins with a JSON value."""
    try:
        json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return False
    return True


def read_json(text: str, most: int) -> Iterator[tuple[int, Any, dict[str, int]]]:
    """(document number, value, the line it begins on) of each of the values in a row."""
    decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant, parse_int=_json_int)
    position, number = len(text) - len(text.lstrip()), 0
    while position < len(text):
        number += 1
        try:
            value, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            refuse(said("not valid JSON: %(msg)s", msg=error.msg), number, error.lineno)
        except RecursionError:
            refuse(said("values are nested more than %(most)s deep", most=MAX_DEPTH), number)
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
        refuse(said("the key %(twice)r is given twice in one object", twice=twice))
    return value


def _no_constant(text: str) -> NoReturn:
    refuse(said("%(text)r is no number that JSON can carry", text=text))


def _bounded(value: Any, number: int, most: int) -> None:
    """Refuse what is too deep, too much, or text that no file can hold (half a surrogate pair)."""
    waiting, count = [(value, 1)], 0
    while waiting:
        found, depth = waiting.pop()
        count += 1
        if depth > MAX_DEPTH:
            refuse(said("values are nested more than %(most)s deep", most=MAX_DEPTH), number)
        if count > most:
            refuse(said("the text unfolds to more than %(most)s values", most=most), number)
        if isinstance(found, dict):
            waiting.extend((inner, depth + 1) for pair in found.items() for inner in pair)
        elif isinstance(found, list):
            waiting.extend((inner, depth + 1) for inner in found)
        elif isinstance(found, str):
            if "\0" in found:
                refuse(NUL, number)
            try:
                found.encode()
            except UnicodeEncodeError:
                refuse(said("a text holds half of a surrogate pair"), number)
        elif isinstance(found, float) and found in (float("inf"), float("-inf")):
            refuse(said("a number is beyond what JSON can carry"), number)
