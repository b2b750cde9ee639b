"""What people do with cron jobs besides changing them: suspend, resume, and a run at once."""

from __future__ import annotations

from cluster import objects
from cluster.errors import AlreadyExists, BadRequest, Conflict
from cluster.kinds import CRON_JOB, JOB
from cluster.port import Cluster, Obj
from cluster.said import said
from jobs import keys
from jobs.cron.runs import build_run, owning_cron
from jobs.operations import MANAGER

ACTIONS = ("suspend", "resume", "trigger")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def act(cluster: Cluster, namespace: str, name: str, action: str, *, at: float, uid: str = "", user: str = "") -> Obj:
    """Do an action at an instant and return what came of it: the cron job, or with `trigger` the job that was made.

    Two triggers within one second are one. Raises BadRequest, NotFound, Conflict (another uid, or being deleted), Invalid.
    """
    if action not in ACTIONS:
        raise BadRequest(said("unknown action %(action)r; known are %(actions)s", action=action, actions=", ".join(ACTIONS)))
    cron = cluster.get(CRON_JOB, name, namespace)
    if uid and objects.uid(cron) != uid:
        raise Conflict(
            said(
                "cron job %(namespace)s/%(name)s is not the one that was meant: it was deleted and made anew",
                namespace=namespace,
                name=name,
            )
        )
    if objects.is_deleting(cron):
        raise Conflict(said("cron job %(namespace)s/%(name)s is being deleted", namespace=namespace, name=name))
    if action == "trigger":
        return _trigger(cluster, cron, user, at)
    body = {"metadata": {"uid": objects.uid(cron)}, "spec": {"suspend": action == "suspend"}}
    return cluster.patch(CRON_JOB, name, namespace, body, field_manager=MANAGER)


def _trigger(cluster: Cluster, cron: Obj, user: str, at: float) -> Obj:
    job = build_run(cron, f"{objects.name(cron)}-m{_short(int(at))}")
    if user:
        job["metadata"]["annotations"][keys.TRIGGERED_BY] = user
    try:
        return cluster.create(JOB, job, field_manager=MANAGER)
    except AlreadyExists:
        there = cluster.get(JOB, objects.name(job), objects.namespace(cron))
        if (owning_cron(there) or {}).get("uid") != objects.uid(cron):
            raise
        return there


def _short(number: int) -> str:
    """A number in few letters, so that the name is no longer than those of scheduled runs."""
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text or "0"
