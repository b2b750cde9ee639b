"""The job plugins' hooks, and what people are told when one of them cannot do its part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from cluster.errors import Conflict, TooManyRequests, Unavailable
from cluster.port import Obj
from cluster.said import said, told
from jobs import keys
from jobs.controller.passes import Pass
from jobs.controller.status import job_phase
from jobs.held import HELD, note_of
from jobs.lifecycle import FINAL
from jobs.plugins import Maker, Plugin, Taken, plugins_of

REASON = "PluginError"
PASSING = (Conflict, Unavailable, TooManyRequests)
"""What passes when it is tried again, and is no fault of a plugin."""


def prepare(this: Pass, plugins: list[Plugin]) -> bool:
    """Let plugins make what the pods need; False while somebody else's object has the name of one that they need.

    What else goes wrong is noted in the job's status and raised, so that it is tried again, ever later.
    """
    done = {}
    for plugin in plugins:
        try:
            with _told(this, plugin, "the job waits until the name is free"):
                plugin.on_job_add(_maker(this, plugin), this.job)
        except Taken as taken:
            this.notes[HELD] = note_of(plugin.name, taken.kind.kind, taken.name)
            return False
        except PASSING:
            raise
        except Exception:
            this.notes[HELD] = note_of(plugin.name)
            raise
        if plugin.is_recorded:
            done[keys.PLUGIN + plugin.name] = plugin.name
    this.notes |= {HELD: None, **done}
    return True


def keep_up(this: Pass, plugins: list[Plugin]) -> None:
    """Let plugins follow a job that was scaled. One whose object was replaced by somebody else's stops nothing."""
    for plugin in plugins:
        try:
            with _told(this, plugin, "what the job's pods were given stays as it was"):
                plugin.on_job_update(_maker(this, plugin), this.job)
        except Taken:
            continue


def adapt(this: Pass, plugins: list[Plugin], pod: Obj) -> None:
    """Let plugins change a pod before it is created."""
    for plugin in plugins:
        with _told(this, plugin):
            plugin.on_pod_create(pod, this.job)


def clear_away(this: Pass) -> None:
    """Let plugins take away what a job that ends for good needs no more; once.

    At the end itself also what nobody has recorded: a pass may have broken off between making and writing it down.
    """
    resources = (this.job.get("status") or {}).get("controlledResources") or {}
    ends = job_phase(this.job) not in FINAL
    for plugin in plugins_of(this.job):
        if plugin.is_recorded and (ends or keys.PLUGIN + plugin.name in resources):
            with _told(this, plugin):
                plugin.on_job_delete(_maker(this, plugin), this.job)
            this.notes[keys.PLUGIN + plugin.name] = None


def _maker(this: Pass, plugin: Plugin) -> Maker:
    return Maker(this.context.cluster, this.job, _teller(this, plugin))


def _teller(this: Pass, plugin: Plugin) -> Callable[[str], None]:
    return partial(_warn, this, plugin)


def _warn(this: Pass, plugin: Plugin, message: str) -> None:
    this.events.warning(this.job, REASON, said("plugin %(name)s: %(message)s", name=plugin.name, message=message))


@contextmanager
def _told(this: Pass, plugin: Plugin, instead: str = "") -> Iterator[None]:
    """Say on the job which plugin failed and why, and what happens while somebody else has the name of an object.

    What only has to be tried again is passed on in silence.
    """
    try:
        yield
    except PASSING:
        raise
    except Taken as taken:
        _warn(this, plugin, said("%(taken)s; %(instead)s", taken=taken, instead=instead))
        raise
    except Exception as error:
        _warn(this, plugin, told(error))
        raise
