"""Results of a simulation as a table, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

import orjson

Result = dict[str, Any]

ROWS: tuple[tuple[str, Callable[[Result], Any], str], ...] = (
    ("jobs", lambda s: s["jobs"], "count"),
    ("  started", lambda s: s["started"], "count"),
    ("  finished", lambda s: s["finished"], "count"),
    ("waiting, mean", lambda s: s["wait"]["mean"], "time"),
    ("waiting, median", lambda s: s["wait"]["median"], "time"),
    ("waiting, 95 %", lambda s: s["wait"]["p95"], "time"),
    ("slowdown, mean", lambda s: s["slowdown"]["mean"], "factor"),
    ("slowdown, median", lambda s: s["slowdown"]["median"], "factor"),
    ("slowdown, 95 %", lambda s: s["slowdown"]["p95"], "factor"),
    ("makespan", lambda s: s["makespan"], "time"),
    ("utilisation", lambda s: s["utilisation"], "percent"),
    ("fragmentation", lambda s: s["fragmentation"], "percent"),
    ("pods preempted", lambda s: s["preempted"], "count"),
    ("work lost, UNIT-hours", lambda s: s["lost"] / 3600, "amount"),
    ("useful, UNIT-hours", lambda s: s["useful"] / 3600, "amount"),
    ("fairness over queues (Jain)", lambda s: s["fairness"], "factor"),
    ("deadlocks", lambda s: s["deadlocks"], "count"),
    ("cycles", lambda s: s["cycles"], "count"),
)
"""What is compared: its name, where it is in a summary, and how it is written."""


def table(results: Sequence[Result]) -> list[tuple[str, list[str]]]:
    """A row a measure with a cell a configuration, then the waiting times by size and by queue."""
    summaries = [result["summary"] for result in results]
    unit = summaries[0]["unit"]
    rows = [(name.replace("UNIT", unit), [written(get(each), how) for each in summaries]) for name, get, how in ROWS]
    for size in _keys(summaries, "wait_by_size"):
        cells = [each["wait_by_size"].get(size) for each in summaries]
        rows.append((f"waiting, mean, jobs of {size} {unit}", [written(c["mean"], "time") if c else "–" for c in cells]))
    queues = _keys(summaries, "queues")
    for queue in queues if len(queues) > 1 else []:
        cells = [each["queues"].get(queue) for each in summaries]
        rows.append((f"waiting, mean, queue {queue}", [written(c["wait"]["mean"], "time") if c else "–" for c in cells]))
    return rows


def _keys(summaries: Sequence[dict[str, Any]], name: str) -> list[str]:
    return list(dict.fromkeys(key for each in summaries for key in each[name]))


def written(value: Any, how: str) -> str:
    """A value for people; what is not known is a dash."""
    if value is None:
        return "–"
    if how == "time":
        return duration(value)
    if how == "percent":
        return f"{100 * value:.1f} %"
    if how == "factor":
        return f"{value:.3f}"
    return f"{value:,.0f}" if how == "count" else f"{value:,.1f}"


def duration(seconds: float) -> str:
    """`12 s`, `3.5 min`, `7.2 h`, `4.1 d`."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def lines(title: str, results: Sequence[Result]) -> list[str]:
    """The table as text."""
    rows, heads = table(results), [result["name"] for result in results]
    left = max(len(name) for name, _ in rows)
    widths = [max(len(head), *(len(cells[i]) for _, cells in rows)) for i, head in enumerate(heads)]

    def line(name: str, cells: Sequence[str]) -> str:
        return "  ".join([name.ljust(left), *(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))])

    return [title, line("", heads), *(line(name, cells) for name, cells in rows)]


def as_json(title: str, results: Sequence[Result], notes: Sequence[str]) -> bytes:
    """Everything, for programs."""
    return orjson.dumps({"title": title, "notes": list(notes), "results": list(results)}, option=orjson.OPT_INDENT_2)


def as_csv(results: Sequence[Result]) -> str:
    """A row a job and configuration; times in seconds."""
    file = io.StringIO()
    columns = list(results[0]["jobs"][0]) if results and results[0]["jobs"] else ["name"]
    writer = csv.DictWriter(file, ["configuration", *columns], lineterminator="\n")
    writer.writeheader()
    for result in results:
        for job in result["jobs"]:
            writer.writerow({"configuration": result["name"], **{name: _safe(value) for name, value in job.items()}})
    return file.getvalue()


def _safe(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula is shown as a text."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" else value
