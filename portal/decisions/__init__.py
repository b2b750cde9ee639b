"""What the scheduler decided, kept: verdicts on jobs, cycles, and the queues' shares over time."""

from portal.decisions.sink import Sink

__all__ = ["Sink"]
