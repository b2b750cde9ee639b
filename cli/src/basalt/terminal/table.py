"""Tables as plain text: columns as wide as Volcano's tools make them, and wider where a value would run into the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """A column of rows of type R. `width` is fixed; 0: as its widest value or title, and `gap` more.

    `title_gap` (of a fitted column) is the room after the title alone, where that differs. Wide ones come with `-o wide`.
    """

    title: str
    value: Callable[[R], Any]
    width: int = 0
    gap: int = 3
    title_gap: int | None = None
    wide: bool = False

    def size(self, values: Sequence[str]) -> int:
        """How many characters its cells take."""
        widest = max((len(value) for value in values), default=0)
        if self.width:
            return self.width
        title = len(self.title) + (self.gap if self.title_gap is None else self.title_gap)
        return max(title, widest + self.gap) if values else title


def lines(columns: Sequence[Column[R]], rows: Sequence[R], *, headers: bool = True) -> list[str]:
    """The table's lines; every cell is padded, the last too, as Volcano's tools do."""
    cells = [[_text(column.value(row)) for row in rows] for column in columns]
    sizes = [column.size(values) for column, values in zip(columns, cells)]
    for place, (column, values) in enumerate(zip(columns[:-1], cells)):  # nothing runs into what follows
        longest = max((len(value) for value in values), default=0)
        sizes[place] = max(sizes[place], max(longest, len(column.title)) + 1)
    titles = [["".join(column.title.ljust(size) for column, size in zip(columns, sizes))]] if headers else []
    body = [["".join(value.ljust(size) for value, size in zip(row, sizes))] for row in zip(*cells)]
    return [line for (line,) in titles + body]


def _text(value: Any) -> str:
    """A cell on one line, without what would move the cursor."""
    text = "" if value is None else str(value)
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)
