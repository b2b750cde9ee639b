"""What a job's plugins made for it, by name: for its page and its REST answer. Nothing of what is in the objects."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _

from cluster import runtime
from cluster.disclosure import HIDDEN
from cluster.errors import ApiError, NotFound
from cluster.kinds import Kind
from jobs.models import Job
from jobs.plugins import REGISTRY
from jobs.plugins.flags import hidden

OURS, MISSING, FOREIGN, UNKNOWN = "there", "missing", "foreign", "unknown"


@dataclass(frozen=True, slots=True)
class Made:
    """One object; `state` is there, missing (not made yet, or cleared away), foreign (somebody else's) or unknown."""

    kind: str
    name: str
    state: str

    @property
    def word(self) -> str:
        """The state, where it is worth a word."""
        return {MISSING: _("not there"), FOREIGN: _("somebody else’s"), UNKNOWN: _("unknown")}.get(self.state, "")


@dataclass(frozen=True, slots=True)
class InForce:
    """A plugin of a job, with its arguments as they may be shown."""

    name: str
    arguments: list[str]
    made: list[Made]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def in_force(job: Job) -> list[InForce]:
    """The job's plugins in the order in which they run."""
    wanted = (job.manifest.get("spec") or {}).get("plugins") or {}
    found = []
    for name, plugin in REGISTRY.items():
        if name in wanted:
            arguments = [str(argument) for argument in wanted[name] or ()]
            made = [Made(kind.kind, title, _state(job, kind, title)) for kind, title in plugin(arguments).makes(job.name)]
            found.append(InForce(name, hidden(plugin.flags, arguments, HIDDEN), made))
    return found


def _state(job: Job, kind: Kind, name: str) -> str:
    if job.deleted_at is not None:
        return MISSING
    try:
        found = runtime.current().get(kind, name, job.namespace)
    except NotFound:
        return MISSING
    except ApiError:
        return UNKNOWN
    owners = found["metadata"].get("ownerReferences") or ()
    return OURS if any(owner.get("uid") == job.uid for owner in owners) else FOREIGN
