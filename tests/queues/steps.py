"""Random steps of queues' shares, and sums over them by their definition."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import strategies as st

from queues.integrals import Standing, Step

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMES = ("a", "b", "c")
units = st.integers(0, 64_000)
standings = st.builds(
    lambda has, due, more: Standing({"gpu": has}, {"gpu": due}, {"gpu": has + more}), units, units, units | st.just(0)
)
worlds = st.dictionaries(st.sampled_from(NAMES), standings, min_size=1)
steps = st.lists(st.tuples(st.integers(1, 40_000), worlds), min_size=2, max_size=12)


def run(moves):
    """Steps at the given distances in milliseconds."""
    at, found = 1_000_000, []
    for passed, world in moves:
        found.append(Step(at, world, {"gpu": 200_000}))
        at += passed
    return found


def brute(found, name, part):
    """The same sum, part by part, from its definition."""
    total = 0
    for step, after in pairwise(found):
        standing = step.queues.get(name)
        if standing is None:
            continue
        has, due, asks = (amounts["gpu"] for amounts in (standing.allocated, standing.deserved, standing.asked))
        amount = {
            "received": has, "deserved": due, "asked": asks, "due": min(due, asks), "met": min(has, due, asks),
            "waited": asks - has, "borrowed": max(0, has - due),
        }[part]  # fmt: skip
        total += amount * (after.at - step.at)
    return total


def shares(world):
    return {
        name: {"share": 0.0, "share_allocated": each.allocated, "share_deserved": each.deserved, "share_request": each.asked,
               "share_inqueue": {}}
        for name, each in world.items()
    }  # fmt: skip


def sampled(sampler, found, begin=START):
    for step in found:
        at = begin + timedelta(milliseconds=step.at)
        sampler.offer(shares(step.queues), at, capacity=step.capacity, inner=step.inner)


def one(amount):
    """One queue that has what it deserves and asks."""
    return {"a": Standing({"gpu": amount}, {"gpu": amount}, {"gpu": amount})}
