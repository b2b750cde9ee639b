"""What a drain does and did, in words, in the active language. Whole sentences each."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from cluster.display import duration, number
from jobs.disrupted import Disruption
from jobs.lifecycle import Action
from jobs.policies import Choice


def gang(found: Disruption, *, names: bool = True) -> str:
    """Whether a gang still has the pods that it needs. `names`: its tasks may be named."""
    values = {"left": number(found.left), "standing": number(found.standing), "minimum": number(found.minimum)}
    if found.left < found.minimum <= found.standing:
        return _("%(left)s of its %(standing)s pods stay and it needs %(minimum)s: the gang falls below its minimum.") % values
    if found.short and not names:
        return _("Some of its tasks keep fewer pods than they need: the gang falls below its minimum.")
    if found.short:
        said = [
            _("%(task)s keeps %(left)s of the %(minimum)s pods that it needs: the gang falls below its minimum.")
            % {"task": task, "left": number(left), "minimum": number(minimum)}
            for task, (left, minimum) in found.short.items()
        ]
        return " ".join(said)
    if found.standing < found.minimum:
        return _("%(standing)s of its pods run and it needs %(minimum)s: the gang is not complete now.") % values
    return _("%(left)s of its %(standing)s pods stay and it needs %(minimum)s: the gang stays complete.") % values


def consequence(found: Disruption, evicted: int) -> str:
    """What its policies make of the eviction."""
    return " ".join(part for part in (_answer(found, evicted), _delay(found.choice), _no_try(found)) if part)


def _answer(found: Disruption, evicted: int) -> str:
    count = len(found.leaving)
    values = {"count": number(count)}
    match found.choice.action:
        case Action.RESTART:
            return ngettext(
                "Its policy restarts the whole job: its %(count)s pod leaves.",
                "Its policy restarts the whole job: all its %(count)s pods leave, on other nodes too.",
                count,
            ) % values  # fmt: skip
        case Action.RESTART_TASK:
            return ngettext(
                "Its policy restarts the whole task: %(count)s pod leaves.",
                "Its policy restarts the whole task: %(count)s pods leave, on other nodes too.",
                count,
            ) % values  # fmt: skip
        case Action.RESTART_PARTITION:
            return ngettext(
                "Its policy restarts the whole partition: %(count)s pod leaves.",
                "Its policy restarts the whole partition: %(count)s pods leave, on other nodes too.",
                count,
            ) % values  # fmt: skip
        case Action.RESTART_POD:
            return _("Its policy restarts the pods that are evicted, which uses up a retry.")
        case Action.ABORT:
            return ngettext(
                "Its policy aborts the job: its %(count)s pod leaves and is not made again until somebody resumes it.",
                "Its policy aborts the job: all its %(count)s pods leave and none is made again until somebody resumes it.",
                count,
            ) % values  # fmt: skip
        case Action.TERMINATE:
            return ngettext(
                "Its policy terminates the job: its %(count)s pod leaves for good.",
                "Its policy terminates the job: all its %(count)s pods leave for good.",
                count,
            ) % values  # fmt: skip
        case Action.COMPLETE:
            return ngettext(
                "Its policy takes the job for completed: its %(count)s pod leaves for good.",
                "Its policy takes the job for completed: all its %(count)s pods leave for good.",
                count,
            ) % values  # fmt: skip
    return ngettext(
        "No policy answers to it: the %(count)s pod that is evicted is made again, the others go on.",
        "No policy answers to it: the %(count)s pods that are evicted are made again, the others go on.",
        evicted,
    ) % {"count": number(evicted)}


def _delay(choice: Choice) -> str:
    return _("It does so %(time)s after the eviction.") % {"time": duration(choice.delay)} if choice.delay else ""


def _no_try(found: Disruption) -> str:
    return _("It has no retry left: the job fails instead.") if found.fails else ""


def _action(choice: Choice) -> str:
    words = {
        Action.RESTART: _("the whole job is restarted"),
        Action.RESTART_TASK: _("the whole task is restarted"),
        Action.RESTART_PARTITION: _("the whole partition is restarted"),
        Action.RESTART_POD: _("the pod is restarted"),
        Action.ABORT: _("the job is aborted"),
        Action.TERMINATE: _("the job is terminated"),
        Action.COMPLETE: _("the job is taken for completed"),
    }
    return words.get(choice.action, str(choice.action))


def maybe(found: Disruption) -> list[str]:
    """What may come on top of it."""
    said = []
    if found.if_fails is not None:
        text = _("Should a program end with an error when it is told to stop: %(action)s.")
        said.append(text % {"action": _action(found.if_fails)})
    if found.if_broken is not None:
        text = _("Should the gang not come together again: %(action)s.")
        said.append(text % {"action": _action(found.if_broken)})
    return said


def held(code: str) -> str:
    """What keeps a pod on its node."""
    words = {
        "budget": _("a disruption budget keeps it for now; it is tried again"),
        "bare": _("nobody would make it again, and the drain does not evict such pods"),
        "local-data": _("it keeps data on the node (emptyDir), and the drain does not evict such pods"),
        "refused": _("the cluster refused; it is tried again"),
    }
    return words.get(code, code)


def stays(code: str) -> str:
    """Why a pod is left alone."""
    words = {
        "daemon": _("of a DaemonSet, which would put it there again"),
        "static": _("made by a file on the node"),
        "ended": _("has ended and holds nothing"),
    }
    return words.get(code, code)
