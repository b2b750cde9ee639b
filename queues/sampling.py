"""Queues' shares over time: one sample of every queue each few seconds, fewer as they grow old, gone after some days.

Samples carry running sums of every step between them, so nothing that happened in between is lost to a report, however few of
them are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from queues.integrals import Integrals, Standing, Step
from queues.models import QueueSample, SampleTime

EVERY = timedelta(seconds=10)
FINE = timedelta(hours=1)
"""For so long all samples are kept; then the last of each minute."""
KEEP = timedelta(days=7)
GAP = timedelta(minutes=1)
"""When nothing was said for longer than this, what happened meanwhile is unknown."""
TIDY = timedelta(minutes=5)
AMOUNTS = ("allocated", "deserved", "request", "inqueue")

Shares = Mapping[str, Mapping[str, Any]]
"""Of queues by name, the columns of `queues.projection.SHARES`."""


class Sampler:
    """Takes every step, writes at most one sample of each queue every `EVERY`, by the time of the cluster.

    `asks` says whether the shares tell what queues ask for.
    """

    def __init__(self, *, asks: bool = True) -> None:
        self._asks = asks
        self._last: datetime | None = None
        self._tidied: datetime | None = None
        self._sums: Integrals | None = None
        self._seen: dict[str, datetime] = {}
        self._told: Shares | None = None

    def step(self, shares: Shares, at: datetime, *, capacity: Mapping[str, int], inner: Collection[str], cycle: int = 0) -> None:
        """How things stand from now on."""
        milliseconds = round(at.timestamp() * 1000)
        sums = self._sums
        is_same = shares is self._told and sums is not None and sums.last.inner == inner
        queues = sums.last.queues if is_same and sums is not None else self._standings(shares)
        self._told = shares
        step = Step(milliseconds, queues, capacity, inner, cycle)
        if sums is None or milliseconds - sums.last.at > GAP.total_seconds() * 1000:
            self._sums = Integrals(step)
            self._last, self._seen = None, {}  # a run begins with a sample
        else:
            sums.advance(step)
        self._seen |= dict.fromkeys(shares, at)

    def offer(self, shares: Shares, at: datetime, *, capacity: Mapping[str, int], inner: Collection[str], cycle: int = 0) -> bool:
        """Take a step, and keep it as a sample if one is due; whether it was."""
        if not shares:
            return False
        self.step(shares, at, capacity=capacity, inner=inner, cycle=cycle)
        if self._sums is None or (self._last is not None and at - self._last < EVERY):
            return False
        self._write(self._sums, shares, at)
        self._last = at
        if self._tidied is None or at - self._tidied > TIDY:
            tidy(at)
            self._tidied = at
        return True

    def _standings(self, shares: Shares) -> dict[str, Standing]:
        return {
            name: Standing(share["share_allocated"], share["share_deserved"], share["share_request"] if self._asks else None)
            for name, share in shares.items()
        }

    def _write(self, sums: Integrals, shares: Shares, at: datetime) -> None:
        samples = [
            QueueSample(queue=name, at=at, totals=sums.total(name), **{key: share[f"share_{key}"] for key in AMOUNTS})
            for name, share in shares.items()
        ]
        samples += [QueueSample(queue=name, at=at, totals=sums.total(name)) for name in self._gone(shares, at)]
        last = sums.last
        moment = SampleTime(at=at, run=sums.since, cycle=last.cycle, capacity=dict(last.capacity), total=dict(sums.capacity))
        with transaction.atomic():
            QueueSample.objects.bulk_create(samples, batch_size=500)
            SampleTime.objects.bulk_create([moment], ignore_conflicts=True)

    def _gone(self, shares: Shares, at: datetime) -> list[str]:
        """Queues that were deleted: their last sums are told until one of them outlives the minute."""
        gone = [name for name, last in self._seen.items() if name not in shares]
        for name in gone:
            if at - self._seen[name] > 2 * GAP:
                del self._seen[name]
        return [name for name in gone if name in self._seen]


def tidy(at: datetime) -> None:
    """Forget what is older than `KEEP`, and of each minute before the last `FINE` all samples but the last.

    The first of a run stays too: sums of the run are counted from it.
    """
    with transaction.atomic():
        for model in (QueueSample, SampleTime):
            model._default_manager.filter(at__lt=at - KEEP).delete()
        old = list(SampleTime.objects.filter(at__lt=at - FINE, at__gte=at - FINE - THINNED).order_by("at"))
        spare = [
            this.at
            for before, this, after in zip(old, old[1:], old[2:], strict=False)
            if before.run == this.run == after.run and minute_of(this.at) == minute_of(after.at)
        ]
        QueueSample.objects.filter(at__in=spare).delete()
        SampleTime.objects.filter(at__in=spare).delete()


THINNED = timedelta(hours=6)
"""How far back minutes are looked at again: what was left when the process before this one ended."""


def minute_of(at: datetime) -> datetime:
    """The full minute in which an instant lies."""
    return at.astimezone(UTC).replace(second=0, microsecond=0)
