"""What a person may do to a job from its page: which, when, and how it is worded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from cluster.access import policy
from jobs.choices import JobPhase
from jobs.models import Job
from jobs.operations import allowed_actions

Text = str | Promise


@dataclass(frozen=True, slots=True)
class Action:
    """One action. `asks` is what the confirmation page says first; without it, one click is enough."""

    name: str
    label: Text
    done: Any
    asks: Text = ""

    @property
    def is_dangerous(self) -> bool:
        """It ends something that cannot be had back."""
        return self.name in ("terminate", "delete")


DELETE = Action(
    "delete",
    _("Delete"),
    _("Deletion of %(name)s was asked for."),
    _("The job and its pods go from the cluster. Its history stays here."),
)

ACTIONS: dict[str, Action] = {
    action.name: action
    for action in (
        Action("suspend", _("Suspend"), _("%(name)s was asked to suspend.")),
        Action("resume", _("Resume"), _("%(name)s was asked to resume.")),
        Action(
            "restart",
            _("Restart"),
            _("%(name)s was asked to restart."),
            _("Its pods stop and the job begins again. This uses one retry."),
        ),
        Action(
            "complete",
            _("Complete"),
            _("%(name)s was asked to complete."),
            _("Pods that still run are stopped and the job counts as completed."),
        ),
        Action(
            "terminate",
            _("Terminate"),
            _("%(name)s was asked to terminate."),
            _("All pods are stopped. A terminated job cannot be resumed."),
        ),
        DELETE,
    )
}


@dataclass(frozen=True, slots=True)
class Offer:
    """An action that the person may take in some phases; `is_now` when this is one of them."""

    action: Action
    phases: str
    is_now: bool


def offers(user: Any, job: Job) -> list[Offer]:
    """What the policy allows, with the phases that answer to it; none on what is gone or is no Job of its own."""
    if job.deleted_at or job.manifest.get("kind", "Job") != "Job" or not policy().may(user, "jobs.act", job):
        return []
    answers = {phase: set(allowed_actions(phase)) | {DELETE.name} for phase in JobPhase.values}
    return [
        Offer(action, " ".join(p for p in JobPhase.values if name in answers[p]), name in answers.get(job.phase, set()))
        for name, action in ACTIONS.items()
    ]


def may_now(user: Any, job: Job, action: Action) -> bool:
    """Whether the person may take the action in the phase that the job is in."""
    return any(offer.action is action and offer.is_now for offer in offers(user, job))
