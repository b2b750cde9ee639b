"""What each expectation asks. A check answers with what was seen where it does not hold; an empty list: it holds.

One module an idea; those about pages are in `portal.scenario.pages`.
"""

from portal.scenario.expect import answers, cards, flows, jobs, places, pods, queues, together
from portal.scenario.expect.base import CHECKS, check, misses

__all__ = ["CHECKS", "answers", "cards", "check", "flows", "jobs", "misses", "places", "pods", "queues", "together"]
