"""What would happen if: cycles of the real scheduler over a model that is afterwards as it was before."""

from scheduler.whatif.bisect import largest
from scheduler.whatif.compare import Comparison, compare
from scheduler.whatif.sandbox import Played, Sandbox

__all__ = ["Comparison", "Played", "Sandbox", "compare", "largest"]
