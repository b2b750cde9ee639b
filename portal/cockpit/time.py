"""Where one cycle's time went, as a table of plugins and phases whose sums are the cycle's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from portal.cockpit import cycles
from portal.cockpit.words import does, phase
from portal.models import Cycle

LEVELS = 6
"""Steps of the ramp that colours milliseconds."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Milliseconds and the step of the ramp; None where the plugin has nothing to say."""

    spent: float | None
    level: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """A plugin's row of a cycle's time."""

    name: str
    does: str
    cells: list[Cell]
    total: float


def time_of(shown: Cycle) -> dict[str, Any]:
    """A cycle's milliseconds by plugin and phase, the largest row first; the framework's own last."""
    found, columns = cycles.matrix(shown), cycles.phases(shown)
    most = max((spent for row in found.values() for spent in row.values()), default=0.0) or 1.0
    totals = {name: sum(row.values()) for name, row in found.items()}
    order = sorted(found, key=lambda name: (name == cycles.CORE, -totals[name], name))
    actions = sorted(shown.actions.items(), key=lambda each: -each[1])
    return {
        "cycle": shown,
        "columns": [phase(name) for name in columns],
        "lines": [
            Line(name, does(name), [_cell(found[name].get(each), most) for each in columns], totals[name]) for name in order
        ],
        "sums": [sum(row.get(each, 0.0) for row in found.values()) for each in columns],
        "most": actions[0] if actions and shown.milliseconds and actions[0][1] > shown.milliseconds / 2 else None,
        "per_second": shown.bound / shown.milliseconds * 1000 if shown.bound and shown.milliseconds else None,
    }


def _cell(spent: float | None, most: float) -> Cell:
    if spent is None:
        return Cell(None)
    return Cell(spent, min(int((spent / most) ** 0.5 * (LEVELS + 1)), LEVELS) if spent >= most / 50 else 0)
