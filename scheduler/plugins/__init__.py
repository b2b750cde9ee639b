"""Plugins, one file or folder each. Importing this package makes them known to the registry by their names."""

from scheduler.plugins import (
    binpack,
    capacity,
    cdp,
    conformance,
    drf,
    gang,
    gputopology,
    network_topology,
    nodeorder,
    overcommit,
    pdb,
    predicates,
    priority,
    proportion,
)

__all__ = [
    "binpack",
    "capacity",
    "cdp",
    "conformance",
    "drf",
    "gang",
    "gputopology",
    "network_topology",
    "nodeorder",
    "overcommit",
    "pdb",
    "predicates",
    "priority",
    "proportion",
]
