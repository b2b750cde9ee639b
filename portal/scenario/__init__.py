"""Scenarios: small behaviour cases as YAML, played on the embedded cluster in simulated time with the real parts.

A case has a cluster (`setup`), what happens (`steps`) and what must hold (`expect`). `load` reads a file, every word of it
known; `play` plays one case in memory and says what became of it.
"""

from portal.scenario.player import Outcome, play
from portal.scenario.reading import FileError
from portal.scenario.words import Case, load

__all__ = ["Case", "FileError", "Outcome", "load", "play"]
