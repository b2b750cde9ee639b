"""Plugins and actions by the names that a configuration calls them by."""

from __future__ import annotations

from importlib import import_module
from typing import TypeVar

from scheduler.framework.action import Action
from scheduler.framework.plugin import Plugin

P = TypeVar("P", bound=type[Plugin])
A = TypeVar("A", bound=type[Action])

plugins: dict[str, type[Plugin]] = {}
actions: dict[str, type[Action]] = {}

READ_METRICS = frozenset({"rescheduling", "usage"})
"""Plugins that look at what nodes are measured to use."""


def plugin(cls: P) -> P:
    """Class decorator: make a plugin known by its `name`."""
    plugins[cls.name] = cls
    return cls


def action(cls: A) -> A:
    """Class decorator: make an action known by its `name`."""
    actions[cls.name] = cls
    return cls


def load_builtin() -> None:
    """Import Basalt's own plugins and actions, which register themselves."""
    for package in ("scheduler.actions", "scheduler.plugins"):
        import_module(package)
