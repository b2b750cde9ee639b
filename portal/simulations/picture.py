"""Drawings of results as SVG, written by ourselves: no library, the same bytes for the same result, light and dark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any
from xml.sax.saxutils import escape

from django.utils.translation import gettext as _

from portal.simulations.names import named
from portal.simulations.outputs import duration

COLOURS = ("#0f766e", "#b45309", "#6d28d9", "#be123c", "#1d4ed8", "#4d7c0f")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 2", "10 4")
"""A line is told apart by its dashes too, not by its colour alone."""
WIDTH, LEFT, RIGHT = 900, 64, 16
STYLE = """<style>
text{font:12px Inter,"Noto Sans",sans-serif;fill:#1f2937}.h{font-size:14px;font-weight:600}.a{font-size:11px;fill:#4b5563}
.g{stroke:#e5e7eb}.bg{fill:#fff}.l{fill:none;stroke-width:1.6}
@media (prefers-color-scheme:dark){text{fill:#e5e7eb}.a{fill:#9ca3af}.g{stroke:#374151}.bg{fill:#111827}}
</style>"""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart."""

    name: str
    points: Sequence[tuple[float, float]]


def comparison(title: str, results: Sequence[dict[str, Any]]) -> str:
    """Use and waiting over time, and waiting times by size, of several configurations."""
    unit = results[0]["summary"]["unit"] if results else "GPU"
    begin = min((result["course"][0]["at"] for result in results if result["course"]), default=0.0)
    use, waiting = list[Line](), list[Line]()
    for result in results:
        times = [(sample["at"] - begin) / 86_400 for sample in result["course"]]
        shares = [100 * s["used"] / s["capacity"] if s["capacity"] else 0.0 for s in result["course"]]
        use.append(Line(named(result["name"]), list(zip(times, shares, strict=True))))
        waiting.append(
            Line(named(result["name"]), list(zip(times, [float(s["waiting"]) for s in result["course"]], strict=True)))
        )
    sizes = list(dict.fromkeys(size for result in results for size in result["summary"]["wait_by_size"]))
    bars = [[_mean(result, size) for result in results] for size in sizes]
    names = [named(result["name"]) for result in results]
    parts = [
        legend(names, 44),
        lines(_("%(unit)ss in use, %%, over days") % {"unit": unit}, use, 70, 150, most=100.0),
        lines(_("Jobs that wait, over days"), waiting, 262, 150),
        groups(_("Mean wait by %(unit)ss asked") % {"unit": unit}, sizes, names, bars, 454, 150),
    ]
    return drawing(named(title), 640, parts)


def _mean(result: dict[str, Any], size: str) -> float | None:
    found = result["summary"]["wait_by_size"].get(size)
    return found["mean"] if found else None


def drawing(title: str, height: int, parts: Sequence[str]) -> str:
    """A whole SVG document."""
    size, name = f'viewBox="0 0 {WIDTH} {height}"', escape(title, {'"': "&quot;"})
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{name}">{STYLE}'
    back = f'<rect class="bg" width="{WIDTH}" height="{height}"/><text class="h" x="16" y="26">{escape(title)}</text>'
    return "".join([head, back, *parts, "</svg>\n"])


def legend(names: Sequence[str], y: int) -> str:
    """Names with their lines."""
    found, x = list[str](), LEFT
    for i, name in enumerate(names):
        found.append(
            f'<path d="M{x} {y}h24" stroke="{colour(i)}" stroke-width="3" stroke-dasharray="{DASHES[i % 6]}"/>'
            f'<text x="{x + 30}" y="{y + 4}">{escape(name)}</text>'
        )
        x += 46 + 7 * len(name)
    return "".join(found)


def lines(title: str, data: Sequence[Line], top: int, height: int, most: float = 0.0) -> str:
    """Lines over one axis from 0."""
    right = max((x for line in data for x, _ in line.points), default=0.0) or 1.0
    high = most or max((y for line in data for _, y in line.points), default=0.0) or 1.0
    step, high = ticks(high)
    found = [f'<text class="h" x="16" y="{top + 12}">{escape(title)}</text>']
    y0, span = top + 24, height - 24
    found += _grid(step, high, y0, span)
    across, _ = ticks(right)
    x = 0.0
    while x <= right:
        found.append(f'<text class="a" x="{_x(x, right):.1f}" y="{y0 + span + 15}" text-anchor="middle">{_plain(x)}</text>')
        x += across
    for i, line in enumerate(data):
        path = _steps([(_x(x, right), y0 + span * (1 - min(y, high) / high)) for x, y in line.points])
        found.append(f'<path class="l" stroke="{colour(i)}" stroke-dasharray="{DASHES[i % 6]}" d="{path}"/>')
    return "".join(found)


def groups(
    title: str,
    heads: Sequence[str],
    names: Sequence[str],
    bars: Sequence[Sequence[float | None]],
    top: int,
    height: int,
    *,
    label: Callable[[float], str] = duration,
    none: str = "–",
) -> str:
    """Bars in groups, each with its value above it; `none` stands where there is none, on a dashed bar when it is a word."""
    high = max((value for group in bars for value in group if value is not None), default=0.0) or 1.0
    found = [f'<text class="h" x="16" y="{top + 12}">{escape(title)}</text>']
    y0, span = top + 34, height - 34
    width = (WIDTH - LEFT - RIGHT) / max(len(heads), 1)
    bar = min(64.0, (width - 24) / max(len(names), 1))
    for g, head in enumerate(heads):
        x = LEFT + g * width
        found.append(f'<text class="a" x="{x + width / 2:.1f}" y="{y0 + span + 15}" text-anchor="middle">{escape(head)}</text>')
        for i, value in enumerate(bars[g]):
            left = x + width / 2 + (i - len(names) / 2) * bar
            endless = value is None and none != "–"
            tall = span * (1.0 if endless else (value or 0.0) / high)
            text = none if value is None else label(value)
            style = f'fill="none" stroke="{colour(i)}" stroke-dasharray="4 3"' if endless else f'fill="{colour(i)}"'
            found.append(
                f'<path d="M{left + 2:.1f} {y0 + span:.1f}v{-tall:.1f}h{bar - 4:.1f}v{tall:.1f}z" {style}/>'
                f'<text class="a" x="{left + bar / 2:.1f}" y="{y0 + span - tall - 4:.1f}" text-anchor="middle">{text}</text>'
            )
    found.append(f'<line class="g" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y0 + span}" y2="{y0 + span}"/>')
    return "".join(found)


def _grid(step: float, high: float, y0: float, span: float) -> list[str]:
    found, value = [], 0.0
    while value <= high + step / 2:
        y = y0 + span * (1 - value / high)
        found.append(
            f'<line class="g" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="a" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_plain(value)}</text>'
        )
        value += step
    return found


def _steps(points: Sequence[tuple[float, float]]) -> str:
    """A path that keeps each value until the next."""
    if not points:
        return ""
    found = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for x, y in points[1:]:
        found.append(f"H{x:.1f}V{y:.1f}")
    return "".join(found)


def ticks(high: float) -> tuple[float, float]:
    """(step, end) of an axis of at most five round steps."""
    power = 10 ** floor(log10(high)) if high > 0 else 1.0
    step = next(part * power for part in (0.2, 0.5, 1, 2) if high / (part * power) <= 5.001)
    return step, step * -(-high // step)


def colour(i: int) -> str:
    """Of the i-th configuration."""
    return COLOURS[i % len(COLOURS)]


def _x(x: float, right: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * x / right


def _plain(value: float) -> str:
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-9 else f"{value:g}"
