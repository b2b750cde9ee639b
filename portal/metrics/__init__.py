"""What a process measures of itself, for Prometheus: Volcano's names where Volcano has one, ours beside them.

docs/metrics.md lists them all. What belongs to an object is read from where the object is, when somebody asks: series go with it.
"""

from portal.metrics.base import heard, registry, text, watch_lead
from portal.metrics.controller import ControllerMetrics, Making
from portal.metrics.measured import Measured
from portal.metrics.mirror import watch_mirror
from portal.metrics.scheduler import SchedulerMetrics

__all__ = [
    "ControllerMetrics",
    "Making",
    "Measured",
    "SchedulerMetrics",
    "heard",
    "registry",
    "text",
    "watch_lead",
    "watch_mirror",
]
