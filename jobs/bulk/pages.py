"""What the page of an operation shows: its preview, its progress, and the outcome of each job in words."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from cluster.display import number
from jobs.bulk import impact
from jobs.bulk.asking import PRIORITY, Preview, Whose, judge, preview
from jobs.bulk.models import BulkItem, BulkOperation, BulkState, Outcome
from jobs.choices import JobPhase, job_mark
from jobs.pages.actions import ACTIONS, Action
from jobs.pages.rendered import parts_in_all_languages

PAGE = 100
MARKS = {
    Outcome.WAITING: "pending",
    Outcome.ASKED: "inqueue",
    Outcome.DONE: "completed",
    Outcome.SAME: "aborted",
    Outcome.REFUSED: "unknown",
    Outcome.FAILED: "failed",
}


PRIORITISED = Action(PRIORITY, gettext_lazy("Set priority"), "", gettext_lazy("Jobs that wait get another place in the line."))


def action_of(operation: BulkOperation) -> Action:
    """The action of an operation, with its words."""
    return PRIORITISED if operation.action == PRIORITY else ACTIONS[operation.action]


def label_of(operation: BulkOperation) -> str:
    """What it does, in a few words."""
    if operation.action == PRIORITY:
        return _("Priority %(name)s") % {"name": operation.argument}
    return str(ACTIONS[operation.action].label)


def why(code: str, phase: str = "", action: str = "") -> str:
    """Why a job is left alone, in words."""
    if code == "phase":
        label = str(JobPhase(phase).label) if phase in JobPhase.values else phase
        return _("its state is %(phase)s, in which %(action)s is not possible") % {"phase": label, "action": action}
    words = {
        "gone": _("it is gone from the cluster"),
        "rights": _("only its owner and administrators may act on it"),
        "unsure": _("it was being asked when the portal stopped; it was not asked again"),
    }
    return words.get(code, "")


def previewed(user: Any, operation: BulkOperation) -> dict[str, Any]:
    """The preview in words."""
    found: Preview = preview(user, operation)
    refusals = [(each.jobs, why(each.code, each.phase, label_of(operation))) for each in found.refusals]
    acts = ngettext("%(n)s job will be acted on", "%(n)s jobs will be acted on", found.acts) % {"n": number(found.acts)}
    return {"preview": found, "refusals": refusals, "acts": acts, "impact": impact.of(user, operation)}


def progress(operation: BulkOperation) -> dict[str, Any]:
    """How far it is: jobs by outcome, in the order of the choices."""
    counts = dict(operation.items.order_by().values_list("outcome").annotate(jobs=Count("*")))
    left = counts.get(Outcome.WAITING, 0) + counts.get(Outcome.ASKED, 0)
    return {
        "operation": operation,
        "action": action_of(operation),
        "label": label_of(operation),
        "state": BulkState(operation.state),
        "counts": [
            (Outcome(value), MARKS[Outcome(value)], counts[value])
            for value in (Outcome.DONE, Outcome.SAME, Outcome.REFUSED, Outcome.FAILED, Outcome.ASKED, Outcome.WAITING)
            if counts.get(value)
        ],
        "finished": operation.total - left,
        "left": left,
    }


def rows(user: Any, operation: BulkOperation, outcome: str, page: str | None) -> Any:
    """A page of its jobs with what became of each; of a draft, what would."""
    items = operation.items.select_related("job").defer("job__manifest", "job__verdict")
    if outcome in Outcome.values and outcome:
        items = items.filter(outcome=outcome)
    found = Paginator(items, PAGE).get_page(page)
    for item in found.object_list:
        if operation.state == BulkState.DRAFT:
            whose = Whose(item.job.owner, item.job.queue, item.job.namespace)
            gone = item.job.deleted_at is not None
            is_so = item.job.priority_class == operation.argument
            item.outcome, item.reason = judge(user, operation.action, whose, item.job.phase, is_gone=gone, is_so=is_so)
        decorate(item, operation)
    return found


def decorate(item: BulkItem, operation: BulkOperation) -> None:
    """Give an item its words and marks."""
    label = label_of(operation)
    item.word = str(Outcome(item.outcome).label)  # type: ignore[attr-defined]
    item.mark = MARKS[Outcome(item.outcome)]  # type: ignore[attr-defined]
    item.why = item.message or why(item.reason, item.job.phase, label)  # type: ignore[attr-defined]
    item.job.mark = job_mark(item.job.phase, item.job.group_phase)


def parts(user: Any, operation: BulkOperation) -> dict[str, dict[str, Any]]:
    """The progress and the first page of its jobs, as the live channel carries them."""
    first = rows(user, operation, "", None)

    def shown() -> dict[str, Any]:
        for item in first.object_list:
            decorate(item, operation)
        return progress(operation) | {"rows": first}

    return parts_in_all_languages({"progress": "jobs/bulk_progress.html", "rows": "jobs/bulk_rows.html"}, shown)
