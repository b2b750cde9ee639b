"""Results in the reader's language: names of measures, and figures for charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from cluster.said import unpacked, words
from portal.simulations import efficiency, outputs
from portal.simulations.names import named

MEASURES = {
    "jobs": gettext_lazy("Jobs"),
    "  started": pgettext_lazy("how many jobs", "Started"),
    "  finished": pgettext_lazy("how many jobs", "Finished"),
    "waiting, mean": gettext_lazy("Waiting, mean"),
    "waiting, median": gettext_lazy("Waiting, median"),
    "waiting, 95 %": gettext_lazy("Waiting, 95 %"),
    "slowdown, mean": gettext_lazy("Slowdown, mean"),
    "slowdown, median": gettext_lazy("Slowdown, median"),
    "slowdown, 95 %": gettext_lazy("Slowdown, 95 %"),
    "makespan": gettext_lazy("Makespan"),
    "utilisation": gettext_lazy("Utilisation"),
    "fragmentation": gettext_lazy("Fragmentation"),
    "pods preempted": gettext_lazy("Pods preempted"),
    "work lost, UNIT-hours": gettext_lazy("Work lost, %(unit)s-hours"),
    "useful, UNIT-hours": gettext_lazy("Useful work, %(unit)s-hours"),
    "fairness over queues (Jain)": gettext_lazy("Fairness over queues (Jain)"),
    "deadlocks": gettext_lazy("Deadlocks"),
    "cycles": gettext_lazy("Scheduling cycles"),
}
WAYS = {
    "gangs": gettext_lazy("Basalt, gangs"),
    "pods": gettext_lazy("Pod by pod, jobs mixed"),
    "pods-in-order": gettext_lazy("Pod by pod, job after job"),
}


def comparison(results: Sequence[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """A row a measure with a cell a configuration, then mean waiting times by size."""
    summaries = [result["summary"] for result in results]
    unit = summaries[0]["unit"]
    rows = []
    for name, get, how in outputs.ROWS:
        word = str(MEASURES[name])
        rows.append((word % {"unit": unit} if "UNIT" in name else word, [outputs.written(get(each), how) for each in summaries]))
    for size in dict.fromkeys(size for each in summaries for size in each["wait_by_size"]):
        cells = [each["wait_by_size"].get(size) for each in summaries]
        name = _("Waiting, mean, jobs of %(size)s %(unit)s") % {"size": size, "unit": unit}
        rows.append((name, [outputs.written(cell["mean"], "time") if cell else "–" for cell in cells]))
    return rows


def titles(result: dict[str, Any]) -> dict[str, Any]:
    """What the charts of a replay draw."""
    unit = result["results"][0]["summary"]["unit"]
    sizes = list(dict.fromkeys(size for each in result["results"] for size in each["summary"]["wait_by_size"]))
    spans = [each["course"][-1]["at"] - each["course"][0]["at"] for each in result["results"] if each["course"]]
    one, span = _scale(max(spans, default=0.0))
    longest = max(
        (found["mean"] or 0.0 for each in result["results"] for found in each["summary"]["wait_by_size"].values()), default=0.0
    )
    wait_length, wait_unit = _scale(longest)
    series = []
    for each in result["results"]:
        course, waits = each["course"], each["summary"]["wait_by_size"]
        begin = course[0]["at"] if course else 0.0
        series.append({
            "name": named(each["name"]),
            "times": [round((sample["at"] - begin) / one, 5) for sample in course],
            "use": [round(100 * s["used"] / s["capacity"], 2) if s["capacity"] else 0 for s in course],
            "waiting": [sample["waiting"] for sample in course],
            "waits": [_mean(waits.get(size), wait_length) for size in sizes],
        })  # fmt: skip
    return {"unit": unit, "sizes": sizes, "series": series, "span": span, "wait": wait_unit}


def _scale(seconds: float) -> tuple[float, str]:
    """A length of time in which so many seconds are a handy number, and its name."""
    for length, name in ((86_400.0, _("days")), (3600.0, _("h")), (60.0, _("min"))):
        if seconds >= 2 * length:
            return length, name
    return 1.0, _("s")


def length(seconds: float) -> tuple[str, str]:
    """A length of time as a number and its unit."""
    unit, name = _scale(seconds)
    return f"{seconds / unit:.1f}", name


def _mean(wait: dict[str, Any] | None, length: float) -> float | None:
    return round(wait["mean"] / length, 4) if wait and wait["mean"] is not None else None


def experiment_rows(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the experiment, written out."""
    found = []
    for row in result["rows"]:
        each = efficiency.cells(row)
        never = _("never")
        found.append({
            "way": str(WAYS[each.way]), "jobs": each.jobs, "makespan": never if row["makespan"] is None else each.makespan,
            "locked": row["deadlocked"], "runs": row["runs"], "held": each.held, "useful": each.useful,
            "share": f"{100 * each.share:.0f} %", "done": [never if at == "never" else at for at in each.done],
        })  # fmt: skip
    return found


def notes(result: dict[str, Any]) -> list[str]:
    """What was assumed, in the reader's language where our words were kept."""
    kept = result["notes"]
    return [words(unpacked(said, note)) for note, said in zip(kept, result.get("said") or [""] * len(kept), strict=True)]
