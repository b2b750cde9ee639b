"""The scheduler's loop: watch, take events in, run a cycle, carry it out, and again.

A cycle runs soon after something changed that may change what is decided; what only confirms or counts is joined, and waits
a little. One thread owns the model; binds and status writes go through threads of their own, and what became of them is
taken in before the next cycle. `step` does one round in the calling thread, for simulated time and tests.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from math import inf
from pathlib import Path
from random import Random
from time import monotonic

from cluster.clock import Clock
from cluster.errors import ApiError
from cluster.kinds import POD_GROUP, QUEUE
from cluster.patience import Patience
from cluster.port import Cluster, Watch, WatchEvent
from scheduler.awaiting import Awaiting, Bind
from scheduler.cache import KINDS, Aside, SchedulerCache
from scheduler.calls import Caller, PostAll
from scheduler.conf import Configuration
from scheduler.configmap import MapKey
from scheduler.cycle import Cycle, run_cycle
from scheduler.framework.record import CycleRecord
from scheduler.measuring import Fetch, Source, fetch_url
from scheduler.meter import Meter
from scheduler.source import ConfSource, ConfState
from scheduler.status import StatusKeeper
from scheduler.topology.nodes import choose_gpus
from scheduler.writer import Report, Writer

logger = logging.getLogger(__name__)

Sink = Callable[[CycleRecord], None]
Told = Callable[[ConfState], None]
"""Hears of the configuration in force, at first and whenever its file changes."""

DEBOUNCE, LONGEST_DEBOUNCE = 0.003, 0.05
"""Seconds of wall time in which events that belong together are awaited; more when cycles before decided nothing."""
QUIET = 0.5
"""Seconds of wall time after which a cycle runs for news that change no decision: binds confirmed, pods that run."""
BINDERS = 4
"""Cycles of which the binds are written at the same time: a large one keeps no small one waiting."""
IDLE = 10.0
"""Seconds after which a cycle runs though nothing changed (time itself may decide, as for waiting limits)."""


def bind_timeout(conf: Configuration) -> float:
    """Seconds that a pod waits for its claims to be bound."""
    options = (option for option in conf.plugins() if option.name == "predicates")
    return next((option.arguments.integer("volumebinding.bindTimeoutSeconds", 600) for option in options), 600)


class SchedulerLoop:
    """One scheduler over one cluster. `conf` is a file, a configuration, or None for Volcano's built-in default.

    A ConfigMap `watched` takes its place as soon as the cluster has it; `last` is what it said last. `rest` are the seconds that
    statuses rest between two writes of which only counts differ.
    """

    def __init__(
        self,
        cluster: Cluster,
        conf: Path | Configuration | None,
        clock: Clock,
        sink: Sink | None = None,
        *,
        scheduler_names: Collection[str] = ("volcano", "basalt"),
        period: float = 1.0,
        seed: int = 0,
        fetch: Fetch = fetch_url,
        post: PostAll | None = None,
        told: Told | None = None,
        rest: float = 0.0,
        watched: MapKey | None = None,
        last: str = "",
    ) -> None:
        self.conf = ConfSource(conf, clock.now(), watched, last)
        self._told, self._rest = told, rest
        self._conf_told: ConfState | None = None
        self.failures = 0
        self._cluster, self._clock, self._sink = cluster, clock, sink
        self._names, self._period = tuple(scheduler_names), period
        self._random = Random(seed)  # noqa: S311 - ties and samples, nothing secret
        self._writer = Writer(cluster, clock.now)
        self._meter, self._post = Meter(fetch), post or Caller().post_all
        self._reports: deque[Report] = deque()
        self._wake = threading.Event()
        self._number = 0
        self._last_cycle = 0.0
        self._patience, self._distress = Patience(0.05), Patience(1.0, 30.0)
        self._retry_at: float | None = None
        self._quiet_at: float | None = None
        self._debounce = DEBOUNCE
        self._watch: Watch | None = None
        self._news_at: float | None = None
        self._epoch = 0
        self._start_over()

    @property
    def cycles(self) -> int:
        """How many cycles have run."""
        return self._number

    @property
    def aside(self) -> list[Aside]:
        """Objects that make no sense to the scheduler, each with its reason."""
        return self.cache.doubts()

    # -- rounds --------------------------------------------------------------------------------------------------------

    def run(self, stop: threading.Event) -> None:
        """Schedule until `stop` is set. An error in a cycle is logged and counted, and the model is read anew."""
        with (
            ThreadPoolExecutor(BINDERS, "binder") as binder,
            ThreadPoolExecutor(1, "reporter") as reporter,
            ThreadPoolExecutor(1, "meter") as meter,
        ):
            while not stop.is_set():
                begin = monotonic()
                try:
                    self._round(stop, binder, reporter, meter)
                except ApiError as error:  # nothing of ours is at fault: what a cluster refuses here is to be read at all
                    logger.warning("the cluster cannot be read: %s", error)
                    self._start_over()
                    stop.wait(self._distress.next())
                except Exception:  # the loop outlives whatever one cycle meets
                    self.failures += 1
                    logger.exception("cycle %s failed; the model is read anew", self._number)
                    self._start_over()
                    stop.wait(self._distress.next())
                else:
                    self._distress.reset()
                # Never more than half of the time in cycles: the rest of the process wants to live too.
                stop.wait(min(monotonic() - begin, self._period))
                self._wake.wait(max(min(self._clock.real(self._period), self._until_due()), DEBOUNCE))
                stop.wait(self._debounce)
                self._wake.clear()
        self.close()

    def step(self) -> CycleRecord:
        """One round in this thread: take events in, run one cycle, carry it out."""
        self._take_in(None, None)
        done = self._cycle()
        lost = self._awaited(done)
        self._reports.append(self._writer.decide(done.binds, done.evictions, done.supplies, done.locks))
        self._reports.append(self._writer.give_up(lost))
        self._reports.append(self._writer.open_gates(done.released))
        self._reports.append(self._writer.report(done.writes.statuses, done.writes.events))
        return done.record

    def close(self) -> None:
        """End the watch."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _round(
        self, stop: threading.Event, binder: ThreadPoolExecutor, reporter: ThreadPoolExecutor, meter: ThreadPoolExecutor
    ) -> None:
        news = self._take_in(stop, meter) or (self._quiet_at is not None and monotonic() >= self._quiet_at)
        if self._watch is None or not (news or self._clock.now() >= min(self._last_cycle + IDLE, self._keeper.due_at())):
            return
        self._quiet_at = None
        done = self._cycle()
        lost = self._awaited(done)
        decided = done.binds or done.evictions or done.admitted
        self._debounce = DEBOUNCE if decided else min(2 * self._debounce, LONGEST_DEBOUNCE)
        told = partial(self._done, self._epoch)
        if done.binds or done.evictions:
            binding = binder.submit(self._writer.decide, done.binds, done.evictions, done.supplies, done.locks)
            binding.add_done_callback(told)
        if done.released:
            binder.submit(self._writer.open_gates, done.released).add_done_callback(told)
        if lost:
            binder.submit(self._writer.give_up, lost).add_done_callback(told)
        if done.writes.statuses or done.writes.events:
            reporter.submit(self._writer.report, done.writes.statuses, done.writes.events).add_done_callback(told)

    def _awaited(self, done: Cycle) -> list[Bind]:
        """Add the binds whose claims are bound by now to those of the cycle; the binds that waited in vain."""
        if not self._awaiting:
            return []
        ready, lost = self._awaiting.take(self.cache.estate, self._clock.now(), bind_timeout(self.conf.current))
        done.binds += [binding for binding, _ in ready]
        done.supplies |= {binding.uid: supply for binding, supply in ready}
        return lost

    def _until_due(self) -> float:
        """Seconds until a cycle is due by itself: for writes that failed, or for news that wait; infinity when none is."""
        return min((at for at in (self._retry_at, self._quiet_at) if at is not None), default=inf) - monotonic()

    def _done(self, epoch: int, future: Future[Report]) -> None:
        error = future.exception()
        if epoch != self._epoch:
            return  # the model that decided this is gone; the one that took its place was read from the cluster
        if error is not None:
            # Which of the writes were done is not known: only reading everything anew can tell.
            logger.error("writing the outcome of a cycle failed", exc_info=error)
            self.failures += 1
            self._lost = True
        else:
            self._reports.append(future.result())
        self._wake.set()

    def _cycle(self) -> Cycle:
        self._number += 1
        self._last_cycle = self._clock.now()
        begin, since, self._news_at = monotonic(), self._news_at, None
        done = run_cycle(
            self.cache, self.conf.current, self._keeper, self._number, now=self._last_cycle, random=self._random
        )  # fmt: skip
        done.record.waited = begin - since if since is not None else None
        if self._sink is not None:
            try:
                self._sink(done.record)
            except Exception:  # who listens must not be able to stop the scheduler
                self.failures += 1
                logger.exception("the sink of cycle %s failed", self._number)
        return done

    # -- what comes in -------------------------------------------------------------------------------------------------

    def _start_over(self) -> None:
        self.close()
        self._epoch += 1
        self.cache = SchedulerCache(self._names, choose_gpus)
        self.cache.post = self._post
        self._keeper = StatusKeeper(self._rest)
        self._awaiting = Awaiting()
        self._reports.clear()
        self._lost = False

    def _tell_configuration(self) -> None:
        if self._told is not None and self.conf.is_settled and self._conf_told is not self.conf.state:
            self._conf_told = self.conf.state
            self._told(self.conf.state)

    def _take_in(self, stop: threading.Event | None, meter: ThreadPoolExecutor | None) -> bool:
        """Take in outcomes, then events, then a changed configuration; whether there was anything new."""
        news = False
        while self._reports:
            news = self._settle(self._reports.popleft()) or news
        if self._lost:
            if stop is not None:
                stop.wait(self._patience.next())
            self._start_over()
        news = self.conf.reload(self._clock.now()) or news
        self._tell_configuration()
        conf = self.conf.current
        if (source := Source.of(conf.metrics)) is not None and conf.reads_metrics():
            news = self._meter.tick(source, conf.metrics_interval(), self._clock.now(), meter) or news
            self.cache.usage = self._meter.usage
        if self._retry_at is not None and monotonic() >= self._retry_at:
            self._retry_at, news = None, True
        if self._watch is None:
            return self._synchronise(stop)
        events = self._watch.drain()
        news = self._hear_configuration(events) or news
        if self.cache.apply_all(events):
            return True
        if events and self._quiet_at is None:
            self._quiet_at = monotonic() + min(QUIET, self._clock.real(self._period))
        return news

    def _hear(self) -> None:
        """There is news: remember since when."""
        if self._news_at is None:
            self._news_at = monotonic()
        self._wake.set()

    def _synchronise(self, stop: threading.Event | None) -> bool:
        """Read everything there is, up to the mark that says so."""
        self.conf.listen()
        watch = self._watch = self._cluster.watch(KINDS, notify=self._hear)
        while stop is None or not stop.is_set():
            event = watch.get(timeout=0.2)
            if event is None:
                continue
            self._hear_configuration([event])
            if event.type == "SYNCED":
                return True
            self.cache.apply(event)
        return False

    def _hear_configuration(self, events: Sequence[WatchEvent]) -> bool:
        """Take in what events say of the configuration; whether another one is in force now."""
        if not self.conf.hear(events) or not self.conf.is_settled:
            return False
        changed = self.conf.reload(self._clock.now())
        self._tell_configuration()
        return changed

    def _settle(self, report: Report) -> bool:
        """Take in what became of writes; whether that is news. What failed is as it was before, and is tried again.

        At once when something changes, else after a pause, which grows while nothing at all can be written.
        """
        self._lost |= report.unclear
        for uid in report.failed_binds:
            self.cache.bind_failed(uid)
        for binding, supply in report.awaiting:
            self._awaiting.add(binding, supply, self._clock.now())
        for uid in report.failed_evictions:
            self.cache.evict_failed(uid)
        failed = bool(report.failed_binds or report.failed_evictions)
        for write, done in report.statuses:
            key = f"{write.namespace}/{write.name}"
            if write.kind == POD_GROUP:
                self._group_written(key, write.status, done)
            elif write.kind == QUEUE and not done:
                self._keeper.forget_queue(write.name)
            failed |= not done
        if report.done:
            self._patience.reset()
        if failed and self._retry_at is None:
            self._retry_at = monotonic() + self._patience.next()
        carried_out = bool(report.done) and not report.statuses
        return bool(report.awaiting) or (carried_out and not failed)

    def _group_written(self, uid: str, status: dict[str, object], done: bool) -> None:
        job = self.cache.jobs.get(uid)
        if job is None or job.sent is not status:
            return
        job.sent = None
        job.touch()
        if not done:
            job.phase = str((job.obj.get("status") or {}).get("phase") or "Pending")
            self._keeper.forget(uid)
