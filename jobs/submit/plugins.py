"""Job plugins in the submit form: each can be ticked, and its arguments are one line, written as a shell would take them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from jobs.plugins import NEEDS, REGISTRY
from jobs.submit.draft import Draft, Path
from jobs.submit.fields import Field

TICKED = "on"

_WORDS: Mapping[str, Promise] = {
    "env": _("each pod knows its index"),
    "svc": _("pods find each other by name"),
    "ssh": _("pods reach each other by ssh, with keys of their own"),
    "mpi": _("the master knows its workers, by MPI_HOST"),
    "tensorflow": _("each pod knows the cluster, by TF_CONFIG"),
    "pytorch": _("MASTER_ADDR, WORLD_SIZE and RANK"),
    "ray": _("starts a Ray head and its workers"),
    "hcclrank": _("ranks for Ascend’s HCCL"),
}


class Arguments(Field):
    """A plugin's arguments, as words of a shell; writing some takes the plugin."""

    def __init__(self, plugin: str) -> None:
        super().__init__(f"plugin.{plugin}.arguments", "spec", "plugins", plugin)

    def show(self, value: Any) -> str:
        return shlex.join(str(argument) for argument in value) if isinstance(value, list) else super().show(value)

    def value(self, text: str) -> Any:
        try:
            return shlex.split(text)
        except ValueError:  # a quote is open: the rules say what is wrong with it
            return [text]

    def write(self, draft: Draft, scope: Path, text: str) -> None:
        if text or draft.get(self.at(draft, scope)) is not None:
            draft.set(self.at(draft, scope), self.value(text))


class Taken(Field):
    """Whether the job takes a plugin."""

    def __init__(self, plugin: str) -> None:
        super().__init__(f"plugin.{plugin}", "spec", "plugins", plugin)
        self._plugin = plugin

    def read(self, draft: Draft, scope: Path) -> str:
        plugins = draft.get((*scope, "spec", "plugins"))
        return TICKED if isinstance(plugins, dict) and self._plugin in plugins else ""

    def write(self, draft: Draft, scope: Path, text: str) -> None:
        if text:
            draft.set(self.at(draft, scope), [])
        else:
            draft.remove(self.at(draft, scope))


FIELDS: tuple[Field, ...] = tuple(made(name) for name in REGISTRY for made in (Arguments, Taken))


@dataclass(frozen=True, slots=True)
class Row:
    """One plugin as the form shows it: two inputs, what it does, its arguments' defaults, and whom it comes with by itself."""

    name: str
    taken: Any
    arguments: Any
    word: Promise
    defaults: str
    others: list[str]


def rows(inputs: Mapping[str, Any] | None) -> list[Row]:
    """A row a plugin, in the order in which they run; none when there is no form."""
    if inputs is None:
        return []
    return [
        Row(
            name,
            inputs[f"plugin.{name}"],
            inputs[f"plugin.{name}.arguments"],
            _WORDS[name],
            " ".join(f"--{flag.name}={_default(flag.default)}" for flag in plugin.flags if not flag.is_secret),
            [other for other, needed in NEEDS.items() if name in needed],
        )
        for name, plugin in REGISTRY.items()
    ]


def _default(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
