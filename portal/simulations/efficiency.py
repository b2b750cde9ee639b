"""The efficiency experiment for people: its table, its picture, and the words for its ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from portal.simulations import picture
from portal.simulations.outputs import duration, written

NAMES = {
    "gangs": gettext_noop("Basalt, gangs"),
    "pods": gettext_noop("pod by pod, jobs mixed"),
    "pods-in-order": gettext_noop("pod by pod, job after job"),
}
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cells:
    """One row of the table, written out. `share` is what of the held GPU-hours was useful, 0 to 1."""

    way: str
    jobs: int
    done: list[str]
    makespan: str
    deadlocked: str
    held: str
    useful: str
    share: float


def cells(row: Row) -> Cells:
    """A row written out: `never` where in some run a job was not done."""
    return Cells(
        row["way"],
        row["jobs"],
        ["never" if at is None else duration(at) for at in row["done"]],
        "never" if row["makespan"] is None else duration(row["makespan"]),
        f"{row['deadlocked']} of {row['runs']}",
        written(row["held"], "amount"),
        written(row["useful"], "amount"),
        row["useful"] / row["held"] if row["held"] else 0.0,
    )


def lines(rows: Sequence[Row]) -> list[str]:
    """The table as text; times are means over the repetitions."""
    heads = ("jobs", "scheduler", "all done after", "runs that locked up", "GPU-hours held", "useful", "each job done after")
    table = [heads]
    for row in rows:
        each = cells(row)
        table.append(
            (str(each.jobs), NAMES[each.way], each.makespan, each.deadlocked, each.held, each.useful, ", ".join(each.done))
        )
    widths = [max(len(row[i]) for row in table) for i in range(len(heads))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def drawing(result: dict[str, Any]) -> str:
    """Time until all jobs are done, and what of the GPU-hours that pods held was work, as SVG."""
    rows: Sequence[Row] = result["rows"]
    counts, ways = list(dict.fromkeys(row["jobs"] for row in rows)), list(dict.fromkeys(row["way"] for row in rows))
    by_both = {(row["jobs"], row["way"]): row for row in rows}
    heads = [ngettext("%(count)s job", "%(count)s jobs", count) % {"count": count} for count in counts]
    names = [_(NAMES[way]) for way in ways]
    spans = [[_of(by_both, count, way, "makespan") for way in ways] for count in counts]
    shares = [[_share(by_both.get((count, way))) for way in ways] for count in counts]
    setting = result["setting"]
    title = _("Jobs of %(ps)s ps + %(workers)s workers on %(nodes)s nodes x %(gpus)s GPUs, %(work)s of work each") % {
        **setting,
        "work": duration(setting["work"]),
    }
    parts = [
        picture.legend(names, 46),
        picture.groups(_("All jobs done after"), heads, names, spans, 66, 170, none=_("never")),
        picture.groups(
            _("Useful share of the GPU-hours held, %%") % (), heads, names, shares, 268, 150, label=lambda value: f"{value:.0f} %"
        ),
    ]
    return picture.drawing(title, 450, parts)


def _of(rows: dict[tuple[int, str], Row], jobs: int, way: str, what: str) -> float | None:
    row = rows.get((jobs, way))
    found: float | None = row[what] if row is not None else None
    return found


def _share(row: Row | None) -> float | None:
    return 100 * row["useful"] / row["held"] if row is not None and row["held"] else None


def _percent(value: float) -> str:
    return f"{value:.0f} %"
