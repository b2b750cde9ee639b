"""Plays a case: its setup, its steps, and what must hold."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cluster import runtime
from cluster.errors import ApiError
from portal.scenario.errors import Failed
from portal.scenario.expect import misses
from portal.scenario.pages import Portal
from portal.scenario.steps import STEPS, set_up
from portal.scenario.words import PAGE_WORDS, Case, Step
from portal.scenario.world import World

SECONDS = 60.0
"""Wall time that a case may take."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case: `seen` says why it failed (empty: it passed), `for_a_person` what nobody but a person can check."""

    case: Case
    seen: list[str] = field(default_factory=list)
    for_a_person: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether everything that can be checked held."""
        return not self.seen


def needs_pages(case: Case) -> bool:
    """Whether a case looks at pages, and so needs a database to project into."""
    return bool(case.words() & PAGE_WORDS)


def play(case: Case, *, seconds: float = SECONDS) -> Outcome:
    """Play a case in memory. For one that `needs_pages` the caller provides the database, and clears it afterwards."""
    sentences = [item for item in case.expect if isinstance(item, str)]
    before = runtime.current_or_none()
    try:
        seen = _play(case, time.monotonic() + seconds, seconds)
    except Failed as failure:
        seen = [str(failure)]
    except Exception as error:  # a fault of ours is the case's failure, and the other cases go on
        log.debug("case %s", case.id, exc_info=True)
        seen = [f"broke off: {type(error).__name__}: {error}"]
    finally:
        runtime.use(before)
    return Outcome(case, seen, sentences)


def _play(case: Case, deadline: float, seconds: float) -> list[str]:
    repeat = next((step.value["times"] for step in case.steps if step.word == "repeat"), 1)
    first: Any = None
    for number in range(repeat):
        run = _Run(case, deadline, seconds, seed=number)
        try:
            seen, end = run.play(), run.world.end_state()
        finally:
            run.close()
        if seen:
            return [f"run {number + 1}: {each}" for each in seen] if repeat > 1 else seen
        if number and end != first:
            different = [key for key in end if end[key] != first[key]]
            return [f"runs 1 and {number + 1} end differently: {', '.join(different)}"]
        first = end
    return []


class _Run:
    """One play of one case."""

    def __init__(self, case: Case, deadline: float, seconds: float, *, seed: int) -> None:
        self._case, self._deadline, self._seconds = case, deadline, seconds
        self._nevers = case.nevers()
        self._portal = Portal(case.setup) if needs_pages(case) else None
        self.world = World(case.setup, seed=seed, sink=self._portal.sink if self._portal else None)
        runtime.use(self.world.cluster)
        if self._portal is not None:
            self._portal.connect(self.world)
        self.world.moment = self._moment

    def play(self) -> list[str]:
        """What did not hold."""
        set_up(self.world, self._case.setup)
        self._steps(self._case.steps)
        self.world.look()
        return [miss for item in self._case.expect if not isinstance(item, str) for miss in misses(self.world, item)]

    def close(self) -> None:
        """End everything."""
        if self._portal is not None:
            self._portal.close()
        self.world.close()

    def _steps(self, steps: Iterable[Step]) -> None:
        for step in steps:
            try:
                self._step(step)
            except Failed as failure:
                if type(failure) is not Failed:
                    raise
                raise Failed(f"line {step.line}, {step.word}: {failure}") from None
            except ApiError as error:
                raise Failed(f"line {step.line}, {step.word}: {error}") from None
            self.world.look()
            self._moment()

    def _step(self, step: Step) -> None:
        match step.word:
            case "repeat":
                return
            case "repeat_steps":
                for _ in range(step.value["times"]):
                    self._steps(step.value["steps"])
            case "check":
                if seen := misses(self.world, step.value):
                    raise Failed("; ".join(seen))
            case word if word in PAGE_WORDS:
                assert self._portal is not None
                self._portal.do(word, step.value)
            case word:
                STEPS[word](self.world, step.value)

    def _moment(self) -> None:
        if time.monotonic() > self._deadline:
            raise Failed(f"took more than {self._seconds:g} s")
        for expectations in self._nevers:
            if id(expectations) not in self.world.happened and not misses(self.world, expectations):
                self.world.happened[id(expectations)] = self.world.time_of_day()
