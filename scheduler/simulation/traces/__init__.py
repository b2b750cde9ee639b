"""Public traces as workloads: which of the known shapes a table has, and what each of its rows means."""

from scheduler.simulation.traces.shapes import SHAPES, Choice, Trace, read

__all__ = ["SHAPES", "Choice", "Trace", "read"]
