"""A CSV table from outside, cell by cell: what is wrong is told with file, line and column, and what would be right."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cluster.said import said
from scheduler.simulation.workload import WorkloadError

MOST_FAULTS = 20
MOST_ROWS = 2_000_000
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,2})?", re.ASCII)
_WHOLE = re.compile(r"-?[0-9]{1,12}(\.0+)?", re.ASCII)


@dataclass(slots=True)
class Faults:
    """What is wrong with an input; the first MOST_FAULTS are said, the rest counted."""

    file: str
    found: list[str] = field(default_factory=list)
    more: int = 0

    def add(self, message: str, line: int = 0, column: str = "") -> None:
        """Note a fault at a line (from 1), in a column."""
        if len(self.found) >= MOST_FAULTS:
            self.more += 1
            return
        at: dict[str, Any] = {"file": self.file, "line": line, "column": column, "message": message}
        if line and column:
            self.found.append(said("%(file)s, line %(line)s, column %(column)s: %(message)s", **at))
        elif line:
            self.found.append(said("%(file)s, line %(line)s: %(message)s", **at))
        else:
            self.found.append(said("%(file)s: %(message)s", **at))

    def check(self) -> None:
        """Raise WorkloadError when there are any."""
        if self.found:
            raise WorkloadError(
                [
                    *self.found,
                    *([said("%(file)s: and %(more)s more faults", file=self.file, more=self.more)] if self.more else []),
                ]
            )


@dataclass(frozen=True, slots=True)
class Row:
    """One row; cells are read by column and type, and a faulty one is noted and read as 0."""

    line: int
    cells: dict[str, str]
    faults: Faults

    def text(self, column: str) -> str:
        """A cell as it is, without surrounding blanks."""
        return (self.cells.get(column) or "").strip()

    def number(self, column: str, *, least: float = 0.0, empty: float | None = None) -> float:
        """A number from `least` on; `empty` is what an empty cell means, if anything."""
        text = self.text(column)
        if not text and empty is not None:
            return empty
        if not _NUMBER.fullmatch(text):
            self.faults.add(said("%(text)s is not a number, such as 120 or 0.5", text=_shown(text)), self.line, column)
            return 0.0
        value = float(text)
        if value < least:
            self.faults.add(
                said("%(text)s is below %(least)s; it must be %(least)s or more", text=text, least=f"{least:g}"),
                self.line,
                column,
            )
            return 0.0
        return value

    def whole(self, column: str, *, least: int = 0, most: int = 2**31, empty: int | None = None) -> int:
        """A whole number between two bounds."""
        text = self.text(column)
        if not text and empty is not None:
            return empty
        if not _WHOLE.fullmatch(text):
            self.faults.add(said("%(text)s is not a whole number, such as 8", text=_shown(text)), self.line, column)
            return 0
        value = int(text.split(".")[0])
        if not least <= value <= most:
            self.faults.add(
                said("%(text)s must be from %(least)s to %(most)s", text=text, least=least, most=most), self.line, column
            )
            return 0
        return value


def header_of(line: str, faults: Faults) -> list[str]:
    """The column names of a table's first line. Raises WorkloadError when it is no line of a table."""
    try:
        return [name.strip().lstrip("\ufeff") for name in next(csv.reader([line]), [])]
    except csv.Error as error:
        faults.add(said("the header is no CSV: %(error)s", error=error), 1)
        faults.check()
        raise


def rows(file: str, lines: Iterable[str], needs: Sequence[str], faults: Faults) -> Iterator[Row]:
    """Rows of a table that must have some columns. Raises WorkloadError when it has not, or has no row at all."""
    source = iter(lines)
    header = header_of(next(source, ""), faults)
    if missing := [name for name in needs if name not in header]:
        have = ", ".join(header) if any(header) else "none at all"
        faults.add(said("columns are missing: %(missing)s; the table has %(have)s", missing=", ".join(missing), have=have), 1)
        faults.check()
    if twice := sorted({name for name in header if header.count(name) > 1}):
        faults.add(said("columns are given twice: %(twice)s", twice=", ".join(twice)), 1)
        faults.check()
    reader, count = csv.reader(source, strict=True), 0
    try:
        for cells in reader:
            line = reader.line_num + 1
            if not cells:
                continue
            count += 1
            if count > MOST_ROWS:
                faults.add(
                    said("a trace has at most %(most)s rows; cut it, or choose a part of it", most=f"{MOST_ROWS:,}"),
                    line,
                )
                break
            if len(cells) != len(header):
                faults.add(
                    said("the row has %(cells)s cells, the header %(columns)s", cells=len(cells), columns=len(header)), line
                )
                continue
            yield Row(line, dict(zip(header, cells, strict=True)), faults)
    except csv.Error as error:
        faults.add(said("the row is no CSV: %(error)s", error=error), reader.line_num + 1)
    if not count:
        faults.add(said("there is no row below the header: a trace has at least one job"))
    faults.check()


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…") if text else "an empty cell"
