"""The Job manifest: what is filled in, what is refused and why, and what may change later.

Faults carry a JSON pointer and say what would be right; all of them are found at once. Fields that Basalt does not know
are kept: Kubernetes ignores them too.
"""

from __future__ import annotations

from jobs.manifest import defaults
from jobs.manifest.defaults import default
from jobs.manifest.rules import validate

__all__ = ["default", "defaults", "validate"]
