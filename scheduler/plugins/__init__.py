"""Plugins, one file each. Importing this package makes them known to the registry by their names."""

from scheduler.plugins import binpack, conformance, drf, gang, nodeorder, overcommit, predicates, priority, proportion

__all__ = ["binpack", "conformance", "drf", "gang", "nodeorder", "overcommit", "predicates", "priority", "proportion"]
