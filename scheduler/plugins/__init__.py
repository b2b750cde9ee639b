"""Plugins, one file or folder each. Importing this package makes them known to the registry by their names."""

from scheduler.plugins import (
    binpack,
    capacity,
    conformance,
    drf,
    gang,
    network_topology,
    gputopology,
    nodeorder,
    overcommit,
    predicates,
    priority,
    proportion,
)

__all__ = [
    "binpack",
    "capacity",
    "conformance",
    "drf",
    "gang",
    "network_topology",
    "nodeorder",
    "overcommit",
    "gputopology",
    "predicates",
    "priority",
    "proportion",
]
