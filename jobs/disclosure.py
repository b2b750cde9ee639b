"""What of a Job's manifest is secret: a private key that the ssh plugin is given. It is never shown, copied or exported."""

from __future__ import annotations

from typing import Any

from cluster.disclosure import HIDDEN, without_copy
from cluster.port import Obj
from jobs.plugins import Ssh
from jobs.plugins.flags import hidden


def without_keys(obj: Obj) -> Obj:
    """A Job, or what jobs are made from (JobTemplate, JobFlow, CronJob), without the keys in it; itself when there are none."""
    spec = _hide(obj.get("spec"))
    return obj if spec is obj.get("spec") else {**without_copy(obj), "spec": spec}


def as_read(obj: Obj) -> Obj:
    """The same, less what only a server reads of it: as rows keep a manifest for people."""
    return without_keys({**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}})


def _hide(value: Any) -> Any:
    """The value with keys hidden wherever a mapping of plugins stands in it, short of pods; itself when there are none."""
    if isinstance(value, list):
        items = [_hide(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value)) else value
    if not isinstance(value, dict):
        return value
    fields = {key: _plugins(item) if key == "plugins" else item if key == "tasks" else _hide(item) for key, item in value.items()}
    return fields if any(fields[key] is not value[key] for key in value) else value


def _plugins(plugins: Any) -> Any:
    arguments = plugins.get(Ssh.name) if isinstance(plugins, dict) else None
    if not isinstance(arguments, list) or not all(isinstance(argument, str) for argument in arguments):
        return plugins
    shown = hidden(Ssh.flags, arguments, HIDDEN)
    return plugins if shown == arguments else {**plugins, Ssh.name: shown}
