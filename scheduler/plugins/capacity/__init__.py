"""capacity: every queue deserves what an administrator gave it, flat or along the tree of queues."""

from scheduler.plugins.capacity.plugin import Capacity

__all__ = ["Capacity"]
