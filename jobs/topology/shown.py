"""Facts of the network as templates and programs take them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from cluster.capacity import Unusable
from cluster.display import number, short_model
from jobs.topology.facts import Asked, Facts

SHAPES = 8


@dataclass(frozen=True, slots=True)
class Judged:
    """Free GPUs, those of no use, and by which shapes that was judged: those that wait, else (`waiting` false) usual ones."""

    free: int
    unusable: int
    causes: dict[str, int]
    waiting: bool
    lost: int

    @classmethod
    def of(cls, facts: Facts) -> Judged:
        """The figures; `lost` counts the GPUs of nodes that are not ready, of which nothing is known."""
        found = facts.fragments
        lost = sum(machine.gpus for machine in facts.machines if not machine.ready)
        return cls(found.free, found.unusable, found.causes, bool(facts.waiting), lost)


def asked_words(asked: Iterable[Asked]) -> list[tuple[str, int]]:
    """Shapes in a few words with how many pods ask them, most first: `8 × H100`."""
    pods: Counter[tuple[int, str]] = Counter()
    for each in asked:
        pods[each.shape.gpus, each.shape.model] += each.pods
    return [
        (_("%(gpus)s × %(model)s") % {"gpus": number(gpus), "model": short_model(model) if model else _("any GPU")}, count)
        for (gpus, model), count in pods.most_common(SHAPES)
    ]


def fragments_json(facts: Facts) -> dict[str, Any]:
    """Free GPUs of no use, for programs."""
    judged = Judged.of(facts)
    return {
        "free": judged.free,
        "unusable": judged.unusable,
        "causes": judged.causes,
        "judged_by": "waiting" if judged.waiting else "usual",
        "unknown": judged.lost,
        "nodes": [part_json(part) for part in facts.fragments.parts],
    }


def part_json(part: Unusable) -> dict[str, Any]:
    """One node's part."""
    return {"node": part.node, "gpu_model": part.model, "free": part.free, "unusable": part.gpus, "cause": part.cause}
