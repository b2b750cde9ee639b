"""How a text is refused: in words that name document and line, within bounds that hold for every format."""

from __future__ import annotations

from typing import NoReturn

from cluster.errors import BadRequest, FieldError
from cluster.said import said

MAX_NODES = 200_000
MAX_DEPTH = 100
NUL = said("a text holds a NUL character, which neither a process nor a database takes")


class NotYaml(BadRequest):
    """The parser itself gave up; the text may still be JSON."""


def refuse(
    message: str, document: int | None = None, line: int | None = None, pointer: str = "", error: type[BadRequest] = BadRequest
) -> NoReturn:
    """Raise `error`; `document` and `line` count from 1."""
    told = _at(document, line, message)
    raise error(told, [FieldError(pointer, told, "syntax")])


def _at(document: int | None, line: int | None, message: str) -> str:
    if document and line:
        return said("document %(document)s, line %(line)s: %(message)s", document=document, line=line, message=message)
    if document:
        return said("document %(document)s: %(message)s", document=document, message=message)
    return said("line %(line)s: %(message)s", line=line, message=message) if line else message
