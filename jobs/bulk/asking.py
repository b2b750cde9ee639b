"""Making an operation: which jobs it is for, what would be refused and why, before anything is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection, transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.http import QueryDict
from django.utils.translation import gettext as _

from cluster.access import policy
from cluster.errors import BadRequest, FieldError
from cluster.runtime import now
from cluster.said import said
from jobs.bulk.models import BulkItem, BulkOperation, Outcome
from jobs.choices import JobPhase
from jobs.models import Job
from jobs.operations import ACTIONS, allowed_actions, is_done
from jobs.pages.asked import Filter
from jobs.submit.preview import priorities

DELETE = "delete"
PRIORITY = "priority"
"""Give waiting jobs another priority class; the operation's argument names it."""
NAMES = (*ACTIONS, DELETE, PRIORITY)
MOST = 200_000
"""Jobs of one operation."""


@dataclass(frozen=True, slots=True)
class Whose:
    """What the policy asks of a job: whose it is and where."""

    owner: str
    queue: str
    namespace: str

    def __str__(self) -> str:
        return f"jobs of {self.owner or 'nobody'}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why some jobs are left alone: a code, the phase where that is the cause, and how many."""

    code: str
    phase: str
    jobs: int


@dataclass
class Preview:
    """What an operation would do: jobs that it acts on, those that are so already, those that it leaves alone."""

    acts: int = 0
    same: int = 0
    gpus: int = 0
    pods: int = 0
    refusals: list[Refusal] = field(default_factory=list)

    @property
    def refused(self) -> int:
        """Jobs that are left alone."""
        return sum(refusal.jobs for refusal in self.refusals)


def judge(user: Any, action: str, whose: Whose, phase: str, *, is_gone: bool, is_so: bool = False) -> tuple[Outcome, str]:
    """Whether a job would be acted on (WAITING), is so already, or is refused and by which code.

    `is_so` says of an action with an argument that the job has it already.
    """
    if is_gone:
        return (Outcome.SAME, "") if action == DELETE else (Outcome.REFUSED, "gone")
    if not policy().may(user, "jobs.act", whose):
        return Outcome.REFUSED, "rights"
    if action == PRIORITY:
        if phase != JobPhase.PENDING:
            return Outcome.REFUSED, "phase"
        return (Outcome.SAME, "") if is_so else (Outcome.WAITING, "")
    if action == DELETE or action in allowed_actions(phase):
        return Outcome.WAITING, ""
    return (Outcome.SAME, "") if is_done(action, phase) else (Outcome.REFUSED, "phase")


def make(user: Any, action: str, *, argument: str = "", query: str = "", uids: Collection[str] | None = None) -> BulkOperation:
    """A draft for the jobs of a selection, or for all that a list's filter matches, which are fixed now.

    Raises BadRequest for an unknown action or priority class, for no jobs, and for more than MOST.
    """
    if action not in NAMES:
        raise BadRequest(
            said("unknown action %(action)r; known are %(actions)s", action=action, actions=", ".join(NAMES)),
            [FieldError("/action", said("is not known"))],
        )
    _check_argument(action, argument)
    seen = policy().visible(user, Job.objects.all())
    asked = Filter.of(QueryDict(query))
    jobs = asked.apply(seen) if uids is None else seen.filter(uid__in=set(uids)).order_by("-created_at", "uid")
    if uids is None and asked.problems:
        raise BadRequest(" ".join(asked.problems), [FieldError("/query", problem) for problem in asked.problems])
    if uids is not None and not uids:
        raise BadRequest(_("No job was chosen."), [FieldError("/uids", said("names no job"))])
    with transaction.atomic():
        made = BulkOperation.objects.create(
            user=user.get_username(),
            action=action,
            argument=argument,
            query=query[:2000] if uids is None else "",
            created_at=now(),
        )
        made.total = _freeze(made, jobs)
        if not made.total:
            raise BadRequest(_("No job was chosen."), [FieldError("/uids", said("names no job that you may see"))])
        made.save(update_fields=["total"])
    return made


def _check_argument(action: str, argument: str) -> None:
    if action != PRIORITY:
        return
    known = [name for name, _label in priorities()]
    if argument not in known:
        told = _("There is no priority class %(name)s for you; there are %(known)s.")
        raise BadRequest(
            told % {"name": argument or "–", "known": ", ".join(known) or "–"},
            [FieldError("/argument", said("is no class"), "choice")],
        )


def _freeze(operation: BulkOperation, jobs: QuerySet[Job]) -> int:
    """Write the jobs down in their order, in one statement; how many they are. Raises BadRequest for too many."""
    try:
        chosen, params = jobs.values_list("uid")[: MOST + 1].query.sql_with_params()
    except EmptyResultSet:  # the policy shows none
        return 0
    key = BulkOperation._meta.pk.get_db_prep_value(operation.pk, connection)
    into = f"INSERT INTO {BulkItem._meta.db_table} (operation_id, job_id, outcome, reason, message) "
    with connection.cursor() as cursor:
        # What is put together are names of our own and the ORM's statement; every value is a parameter.
        cursor.execute(f"{into} SELECT %s, frozen.uid, '', '', '' FROM ({chosen}) AS frozen", (key, *params))  # noqa: S608
        count: int = cursor.rowcount
    if count > MOST:
        raise BadRequest(_("At most %(most)s jobs at once; narrow the filter.") % {"most": f"{MOST:,}"})
    return count


def preview(user: Any, operation: BulkOperation) -> Preview:
    """What would become of the jobs that wait for it as they are now: one statement, whatever their number."""
    found = Preview()
    refused: Counter[tuple[str, str]] = Counter()
    waiting = operation.items.filter(outcome=Outcome.WAITING).order_by().annotate(is_there=Q(job__deleted_at=None))
    is_so = Q(job__priority_class=operation.argument) if operation.action == PRIORITY else Q(pk=None)
    waiting = waiting.annotate(is_so=is_so)
    columns = ("job__owner", "job__queue", "job__namespace", "job__phase", "is_there", "is_so")
    sums = {"jobs": Count("*"), "gpus": Sum("job__gpus"), "pods": Sum("job__running")}
    for owner, queue, namespace, phase, is_there, so, jobs, gpus, pods in waiting.values_list(*columns).annotate(**sums):
        outcome, code = judge(user, operation.action, Whose(owner, queue, namespace), phase, is_gone=not is_there, is_so=bool(so))
        if outcome == Outcome.WAITING:
            found.acts, found.gpus, found.pods = found.acts + jobs, found.gpus + gpus, found.pods + pods
        elif outcome == Outcome.SAME:
            found.same += jobs
        else:
            refused[code, phase if code == "phase" else ""] += jobs
    found.refusals = [Refusal(code, phase, jobs) for (code, phase), jobs in refused.most_common()]
    return found
