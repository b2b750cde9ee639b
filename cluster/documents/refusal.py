"""How a text is refused: in words that name document and line, within bounds that hold for every format."""

from __future__ import annotations

from typing import NoReturn

from cluster.errors import BadRequest, FieldError

MAX_NODES = 200_000
MAX_DEPTH = 100
NUL = "a text holds a NUL character, which neither a process nor a database takes"


class NotYaml(BadRequest):
    """The parser itself gave up; the text may still be JSON."""


def refuse(
    message: str, document: int | None = None, line: int | None = None, pointer: str = "", error: type[BadRequest] = BadRequest
) -> NoReturn:
    """Raise `error`; `document` and `line` count from 1."""
    where = ", ".join(filter(None, (f"document {document}" if document else "", f"line {line}" if line else "")))
    said = f"{where}: {message}" if where else message
    raise error(said, [FieldError(pointer, said, "syntax")])
