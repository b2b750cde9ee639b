"""The scheduler's cache: the model of a cluster, kept up to date by watch events."""

from scheduler.cache.events import KINDS, Aside, SchedulerCache

__all__ = ["KINDS", "Aside", "SchedulerCache"]
