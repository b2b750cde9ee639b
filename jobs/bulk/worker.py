"""Doing an operation: chunk by chunk, in bulk writes to the cluster, with an outcome kept for each job.

A process that takes an operation holds it by a lease. What is about to be asked is written down first, so that whoever goes
on after a crash knows what may have been done: asking again does no harm, save for a restart, which is then not repeated.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import DatabaseError
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from cluster import commands, runtime
from cluster.away import Away
from cluster.errors import ApiError, Conflict
from cluster.kinds import COMMAND, JOB
from cluster.port import Cluster, Obj, Victim
from cluster.port import Outcome as Outcome_
from cluster.projection import Batch, notify
from jobs.bulk.asking import DELETE, PRIORITY, Whose, judge
from jobs.bulk.models import BulkItem, BulkOperation, BulkState, Outcome
from jobs.choices import JobPhase
from jobs.operations import ACTIONS, MANAGER
from jobs.projection import project_jobs
from jobs.roles import told_phase

CHUNK = 2_500
LEASE = timedelta(seconds=30)
PAUSE = 1.0
ONCE = frozenset({"restart"})
"""Actions that do something again when they are asked again."""

bell = threading.Event()
"""Rung when an operation is begun in this process, so that it does not wait for the next look."""


@dataclass(frozen=True, slots=True)
class _Item:
    """One job of a chunk as it is now."""

    id: int
    outcome: str
    uid: str
    namespace: str
    name: str
    whose: Whose
    phase: str
    priority: str
    version: int
    is_gone: bool


_Verdict = tuple[Outcome, str, str]
"""What became of an item: outcome, code of a refusal, message of a failure."""


class Worker:
    """Works on operations that nobody else works on."""

    def __init__(self, name: str = "") -> None:
        self.name = name or f"{socket.gethostname()[:40]}-{os.getpid()}-{threading.get_ident()}"[:64]

    def run(self, stop: threading.Event) -> None:
        """Until told to stop; between two chunks it looks whether it was."""
        away = Away("actions on many jobs wait")
        while not stop.is_set():
            try:
                operation = self.take()
                while operation is not None and not stop.is_set() and self.step(operation):
                    pass
                away.answered()
            except (DatabaseError, ApiError) as error:
                away.failed(error)
                operation = None
            if operation is None:
                bell.wait(PAUSE)
                bell.clear()

    def take(self) -> BulkOperation | None:
        """The oldest operation that is begun and that nobody holds, now held by this worker."""
        now = timezone.now()
        free = BulkOperation.objects.filter(state=BulkState.RUNNING).filter(
            Q(lease_until=None) | Q(lease_until__lt=now) | Q(worker=self.name)
        )
        for operation in free.order_by("started_at")[:3]:
            held = free.filter(pk=operation.pk, worker=operation.worker)
            if held.update(worker=self.name, lease_until=now + LEASE):
                return operation
        return None

    def step(self, operation: BulkOperation) -> bool:
        """Do one chunk; whether there is more to do, and still for this worker."""
        items = _items(operation)
        if not items:
            self._hold(operation).update(state=BulkState.DONE, finished_at=runtime.now(), lease_until=None)
            notify("bulk", [str(operation.pk)])
            return False
        user = get_user_model().objects.filter(username=operation.user).first()
        verdicts: dict[int, _Verdict] = {}
        asks: list[_Item] = []
        for item in items:
            is_so = item.priority == operation.argument
            outcome, code = judge(user, operation.action, item.whose, item.phase, is_gone=item.is_gone, is_so=is_so)
            if outcome == Outcome.SAME and item.outcome == Outcome.ASKED:
                outcome = Outcome.DONE  # it was asked for before its worker went away
            if outcome == Outcome.WAITING:
                asks.append(item)
            else:
                verdicts[item.id] = (outcome, code, "")
        BulkItem.objects.filter(pk__in=[item.id for item in asks]).update(outcome=Outcome.ASKED)
        verdicts |= ask(runtime.current(), operation, asks)
        _write(verdicts)
        notify("bulk", [str(operation.pk)])
        return bool(self._hold(operation).update(lease_until=timezone.now() + LEASE))

    def _hold(self, operation: BulkOperation) -> Any:
        """The operation, as long as it is this worker's and was not stopped."""
        return BulkOperation.objects.filter(pk=operation.pk, worker=self.name, state=BulkState.RUNNING)


def _items(operation: BulkOperation) -> list[_Item]:
    """The next jobs of an operation: first what was being asked when its worker went away."""
    left = operation.items.filter(outcome__in=(Outcome.ASKED, Outcome.WAITING)).order_by("-outcome", "id")
    columns = (
        "id", "outcome", "job_id", "job__namespace", "job__name", "job__owner", "job__queue", "job__phase",
        "job__priority_class", "job__resource_version", "job__deleted_at",
    )  # fmt: skip
    return [
        _Item(
            pk,
            outcome,
            uid,
            namespace or "",
            name or "",
            Whose(owner or "", queue or "", namespace or ""),
            phase or "",
            priority or "",
            version or 0,
            gone,
        )
        for pk, outcome, uid, namespace, name, owner, queue, phase, priority, version, gone in (
            (*row[:-1], row[-1] is not None or row[4] is None) for row in left.values_list(*columns)[:CHUNK]
        )
    ]


def ask(cluster: Cluster, operation: BulkOperation, items: Sequence[_Item]) -> dict[int, _Verdict]:
    """Ask for the action on these jobs, in one bulk write, and say what became of each."""
    if not items:
        return {}
    if operation.action == DELETE:
        found = cluster.delete_many(JOB, [Victim(item.namespace, item.name, item.uid) for item in items])
        return {item.id: _became(outcome.error) for item, outcome in zip(items, found, strict=True)}
    if operation.action == PRIORITY:
        return prioritised(cluster, operation.argument, items)
    action = ACTIONS[operation.action]
    waiting = {(each.get("target") or {}).get("uid") for each in cluster.list(COMMAND).items if each.get("action") == action}
    verdicts: dict[int, _Verdict] = {item.id: (Outcome.DONE, "", "") for item in items if item.uid in waiting}
    left = [item for item in items if item.uid not in waiting]
    if operation.action in ONCE:
        verdicts |= {item.id: (Outcome.FAILED, "unsure", "") for item in left if item.outcome == Outcome.ASKED}
        left = [item for item in left if item.outcome != Outcome.ASKED]
    made = [commands.command(_target(item), action, namespace=item.namespace, user=operation.user) for item in left]
    outcomes = cluster.create_many(COMMAND, made, field_manager=MANAGER)
    return verdicts | {item.id: _became(outcome.error) for item, outcome in zip(left, outcomes, strict=True)}


def prioritised(cluster: Cluster, name: str, items: Sequence[_Item]) -> dict[int, _Verdict]:
    """Give jobs a class, as long as they wait. Who was written since we looked is read again, and written if it still waits."""
    patch = {"spec": {"priorityClassName": name}}
    writes = [(Victim(item.namespace, item.name, item.uid), _at(patch, item.version)) for item in items]
    outcomes = list(cluster.patch_many(JOB, writes, field_manager=MANAGER))
    for place, (item, outcome) in enumerate(zip(items, outcomes, strict=True)):
        if isinstance(outcome.error, Conflict):
            outcomes[place] = _once_more(cluster, item, patch)
    project_jobs(Batch(upserts=[outcome.object for outcome in outcomes if outcome.object is not None]))
    return {item.id: _became(outcome.error) for item, outcome in zip(items, outcomes, strict=True)}


def _at(patch: Obj, version: object) -> Obj:
    return {**patch, "metadata": {"resourceVersion": str(version)}}


def _once_more(cluster: Cluster, item: _Item, patch: Obj) -> Outcome_:
    try:
        stored = cluster.get(JOB, item.name, item.namespace)
        if stored["metadata"]["uid"] != item.uid or told_phase(stored) != JobPhase.PENDING:
            raise Conflict(_("It does not wait any more: nothing was changed."))
        change = _at(patch, stored["metadata"]["resourceVersion"])
        obj = cluster.patch(JOB, item.name, item.namespace, change, field_manager=MANAGER)
        return Outcome_(item.namespace, item.name, object=obj)
    except ApiError as error:
        return Outcome_(item.namespace, item.name, error=error)


def _target(item: _Item) -> dict[str, Any]:
    """As much of the Job as a Command needs; its uid keeps another one of its name out of it."""
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": {"name": item.name, "namespace": item.namespace, "uid": item.uid},
    }


def _became(error: Exception | None) -> _Verdict:
    return (Outcome.DONE, "", "") if error is None else (Outcome.FAILED, "cluster", str(error)[:2000])


def _write(verdicts: dict[int, _Verdict]) -> None:
    """Keep the outcomes: one statement for each that several share."""
    shared: defaultdict[_Verdict, list[int]] = defaultdict(list)
    for pk, verdict in verdicts.items():
        shared[verdict].append(pk)
    for (outcome, code, message), ids in shared.items():
        BulkItem.objects.filter(pk__in=ids).update(outcome=outcome, reason=code, message=message)
