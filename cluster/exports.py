"""Lists as CSV or JSON, streamed: one row at a time is held, however many there are."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator, Sequence
from typing import Any

import orjson
from django.http import StreamingHttpResponse

_FORMULA = ("=", "+", "-", "@", "\t", "\r")

Rows = tuple[Sequence[str], AsyncIterator[Sequence[Any]]]
"""The names of the fields, and the values of each row."""


def answer(rows: Rows, name: str, form: str) -> StreamingHttpResponse:
    """Rows as a file to be kept: `form` is csv or json."""
    return StreamingHttpResponse(
        as_csv(rows) if form == "csv" else as_json(rows),
        content_type="text/csv; charset=utf-8" if form == "csv" else "application/json",
        headers={"Content-Disposition": f'attachment; filename="{name}.{form}"', "X-Accel-Buffering": "no"},
    )


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        """The text itself."""
        return text


async def as_csv(rows: Rows) -> AsyncIterator[str]:
    """Lines of CSV, the header first, with a mark that tells spreadsheets that it is UTF-8."""
    fields, found = rows
    writer = csv.writer(_Echo())
    yield "\ufeff" + str(writer.writerow(fields))
    async for values in found:
        yield str(writer.writerow([_safe(_cell(value)) for value in values]))


async def as_json(rows: Rows) -> AsyncIterator[bytes]:
    """An array with an object a row, a line each."""
    fields, found = rows
    between = b"[\n"
    async for values in found:
        yield between + orjson.dumps(dict(zip(fields, values, strict=True)))
        between = b",\n"
    yield b"\n]\n" if between == b",\n" else b"[]\n"


def _cell(value: Any) -> Any:
    """A value as one cell: labels as their selector would be written."""
    if isinstance(value, dict):
        return ",".join(f"{key}={text}" for key, text in sorted(value.items()))
    return "" if value is None else value


def _safe(value: Any) -> Any:
    """A spreadsheet must not run a name as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
