"""What happens to a simulated pod: how long it takes to start, to run and to stop, and how it ends.

Annotations say it; what they leave out is drawn from a generator seeded by the pod's uid, so the answer is the same
whenever it is asked for.
"""

import random
import re
from dataclasses import dataclass

from cluster.durations import parse_duration
from cluster.objects import SIM_DURATION, SIM_EXIT_CODE, SIM_START_DELAY, annotations, owner, uid
from cluster.port import Obj
from cluster.said import said

_SLEEP = re.compile(r"\bsleep\s+([0-9]{1,9}(?:\.[0-9]{1,6})?)([smhd]?)(?![\w.])")
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Timing:
    """Ranges in seconds of what is not annotated. A command `sleep N` runs N seconds, at most `longest_sleep`."""

    start: tuple[float, float] = (0.5, 3.0)
    run: tuple[float, float] = (15.0, 60.0)
    stop: tuple[float, float] = (0.2, 1.5)
    longest_sleep: float = 120.0


INSTANT = Timing(start=(0.0, 0.0), stop=(0.0, 0.0))
"""Pods start and stop at once, for benches."""


@dataclass(frozen=True, slots=True)
class Fate:
    """A pod's seconds, the exit code of each attempt (the last one repeats), and what was wrong with its annotations."""

    start_delay: float
    duration: float
    stop_delay: float
    exit_codes: tuple[int, ...] = (0,)
    faults: tuple[str, ...] = ()

    def exit_code(self, restarts: int) -> int:
        """How the attempt after so many restarts ends."""
        return self.exit_codes[min(restarts, len(self.exit_codes) - 1)]


def fate_of(pod: Obj, timing: Timing, seed: int = 0) -> Fate:
    """A pod's fate. A wrong annotation counts as missing and is told in `faults`."""
    chance = random.Random(f"{seed}/{uid(pod)}")  # noqa: S311 - a simulation, nothing secret
    start, run, stop = (chance.uniform(*span) for span in (timing.start, timing.run, timing.stop))
    notes, faults = annotations(pod), list[str]()
    slept = _sleep_seconds(pod)
    return Fate(
        start_delay=_seconds(notes.get(SIM_START_DELAY), SIM_START_DELAY, start, faults),
        duration=_seconds(
            notes.get(SIM_DURATION), SIM_DURATION, run if slept is None else min(slept, timing.longest_sleep), faults
        ),
        stop_delay=stop,
        exit_codes=_exit_codes(notes.get(SIM_EXIT_CODE), faults),
        faults=tuple(faults),
    )


def restart_policy(pod: Obj) -> str:
    """`Always`, `OnFailure` or `Never`.

    Where it is missing Kubernetes means Always; a batch Job's pod would then never end, so for one it means Never.
    """
    given = (pod.get("spec") or {}).get("restartPolicy")
    if given in ("Always", "OnFailure", "Never"):
        return str(given)
    controller = owner(pod)
    if controller and controller.get("kind") == "Job" and str(controller.get("apiVersion", "")).startswith("batch."):
        return "Never"
    return "Always"


def _seconds(text: str | None, key: str, otherwise: float, faults: list[str]) -> float:
    if text is None:
        return otherwise
    try:
        seconds = parse_duration(text)
        if seconds < 0:
            raise ValueError(said("%(text)r is negative: write 0s or more", text=text))
    except ValueError as error:
        faults.append(said("annotation %(key)s: %(error)s", key=key, error=error))
        return otherwise
    return seconds


def _exit_codes(text: str | None, faults: list[str]) -> tuple[int, ...]:
    if text is None:
        return (0,)
    parts = [part.strip() for part in text.split(",")]
    if all(re.fullmatch(r"[0-9]{1,3}", part) and int(part) <= 255 for part in parts):
        return tuple(map(int, parts))
    faults.append(
        said(
            "annotation %(key)s: %(text)r is no exit code: write 0 to 255, or one for each attempt: '1,0'",
            key=SIM_EXIT_CODE,
            text=text[:60],
        )
    )
    return (0,)


def _sleep_seconds(pod: Obj) -> float | None:
    """How long the first container's command sleeps in all, or None when it says nothing of the kind."""
    containers = (pod.get("spec") or {}).get("containers") or [{}]
    words = [*(containers[0].get("command") or ()), *(containers[0].get("args") or ())]
    found = _SLEEP.findall(" ".join(map(str, words)))
    return sum(float(number) * _SECONDS[unit] for number, unit in found) if found else None
