"""The actions; importing the package registers them."""

from scheduler.actions import allocate, backfill, enqueue, gangs, preempt, reclaim, shuffle

__all__ = ["allocate", "backfill", "enqueue", "gangs", "preempt", "reclaim", "shuffle"]
