"""Where waiting jobs and submissions that are tried would go, drawn over the network."""

from __future__ import annotations

from typing import Any

from cluster import objects
from cluster.access import policy
from cluster.errors import Unavailable
from cluster.port import Obj
from jobs.elsewhere import SAID
from jobs.models import Job
from jobs.topology import placement, tab
from jobs.topology import places as placed
from jobs.topology.facts import ground
from jobs.topology.foretold import Place
from portal.unblock.copy import current
from portal.unblock.trial import Trial, places
from scheduler.topology.fragments import Shape


def foretold(user: Any, job: Job) -> list[Place] | None:
    """Where the next cycles would put the pods of a waiting job; empty: nowhere yet. None where the copy cannot be asked."""
    if (job.verdict or {}).get("code") == SAID or not policy().may(user, "jobs.submit"):
        return None
    try:
        with current().pinned() as view:
            manifest = view.job(job.namespace, job.name)
            gang = view.gang(manifest) if manifest is not None else None
            if gang is None:
                return None
            found = view.baseline
            return places(found.binds.get(gang.uid, [])) if gang.uid in found.started else []
    except Unavailable:
        return None


def of_trial(user: Any, manifest: Obj, trial: Trial) -> dict[str, Any]:
    """A submission that was tried: its placement over the network, or the domains that come nearest."""
    asked = _asked(manifest)
    machines, network = ground(user, {name for shape, _ in asked for name in shape.needs})
    order = [str(task.get("name")) for task in manifest["spec"].get("tasks") or ()]
    found = placed.of_trial(objects.name(manifest), trial.places)
    drawn = placement.draw(found, machines, network, order) if trial.places else None
    nearer = tab.near(machines, network, asked) if not trial.starts else []
    return {
        "drawn": drawn,
        "place_rows": tab.rows(objects.name(manifest), drawn, machines, network) if drawn is not None else [],
        "places_more": max(0, len(found.held) - tab.ROWS),
        "nearest": nearer,
        "best": tab.best_of(nearer),
        "network": network,
    }


def _asked(manifest: Obj) -> list[tuple[Shape, int]]:
    """What each task asks a pod, and how many pods."""
    found = []
    for task in manifest["spec"].get("tasks") or ():
        spec = task["template"]["spec"]
        model = str((spec.get("nodeSelector") or {}).get(objects.GPU_PRODUCT_LABEL) or "")
        found.append((tab.shape(objects.pod_requests(spec), model), int(task.get("replicas") or 0)))
    return found


def as_json(found: dict[str, Any]) -> dict[str, Any]:
    """The same for programs."""
    drawn = found["drawn"]
    return {
        "placement": placement.as_json(drawn) if drawn is not None else None,
        "nearest": [tab.near_json(each) for each in found["nearest"]],
    }
