"""The jobs that have arrived, and their pods: how they come, run, are lost, come again and end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from cluster.kinds import POD, POD_GROUP, PRIORITY_CLASS
from cluster.port import Obj
from scheduler.simulation import pods as making
from scheduler.simulation.accounts import Outcome, Totals
from scheduler.simulation.gauges import Gauges
from scheduler.simulation.runs import Run
from scheduler.simulation.workload import Workload
from scheduler.simulation.world import World

Why = Literal["preempted", "failed", "gave_up"]
OnPace = Callable[[Run], None]
"""Hears of each job whose pace changed: its end has another moment now."""


class Population:
    """Keeps jobs by index while they are there, and the outcomes of those that ended. Times are of the workload's clock.

    `waiting` counts jobs that do not make progress, `asked` what those want of the main resource; `pending` are the pods that
    have no node.
    """

    def __init__(self, workload: Workload, world: World, gauges: Gauges, totals: Totals, on_pace: OnPace) -> None:
        self.runs: dict[int, Run] = {}
        self.finished: list[Outcome] = []
        self.starts_of_finished: dict[int, float | None] = {}
        self.waiting, self.asked, self.pending = 0, 0.0, 0
        self._workload, self._world, self._gauges, self._totals, self._on_pace = workload, world, gauges, totals, on_pace
        self._priorities = {o["metadata"]["name"]: o["value"] for o in workload.objects if o["kind"] == PRIORITY_CLASS.kind}
        self._owner: dict[str, int] = {}
        self._unadmitted: dict[str, int] = {}
        self._made = 0

    # -- jobs come and go ----------------------------------------------------------------------------------------------

    def arrive(self, index: int, at: float, duration: float) -> Run:
        """A job is submitted. Its pods are made once it is admitted, as a job controller does; pods scheduled apart at once."""
        job = self._workload.jobs[index]
        outcome = Outcome(job.name, job.queue, self._gauges.size(job), job.pods, job.arrival, duration)
        run = self.runs[index] = Run(index, job, outcome, duration, self._gauges.scale, done=job.ran, since=at)
        self._count(run, 1)
        if job.apart:
            return run
        self._world.put(POD_GROUP, making.group(job, self._epoch(at)))
        if not job.made:
            self._unadmitted[job.key] = index
        for pod in job.made:
            self._put(run, pod, at)
        if job.ran > 0 and outcome.start is not None:
            outcome.start = outcome.first_pod = at - job.ran
        return run

    def admitted(self, at: float) -> bool:
        """Make the pods of jobs that the scheduler let in; whether there were any."""
        let_in = [key for key in self._unadmitted if (job := self._world.job(key)) is not None and job.phase != "Pending"]
        for key in let_in:
            run = self.runs[self._unadmitted.pop(key)]
            for name, template in making.templates(run.job):
                self.make(run, name, at, template)
        return bool(let_in)

    def finish(self, run: Run, at: float) -> None:
        """A job has done its work: its pods and PodGroups are gone."""
        run.settle(at)
        self._count(run, -1)
        run.outcome.finish = at
        for uid in list(run.pods):
            self._remove(run, uid, at)
        if not run.job.apart:
            self._world.remove(POD_GROUP, making.group(run.job, 0.0))
        del self.runs[run.index]
        self.finished.append(run.outcome)
        self.starts_of_finished[run.index] = run.outcome.start

    @property
    def wants(self) -> bool:
        """Whether anything is there that a cycle could do something for."""
        return bool(self.pending or self._unadmitted)

    # -- pods come and go ----------------------------------------------------------------------------------------------

    def make(self, run: Run, name: str, at: float, template: Obj | None = None) -> None:
        """A pod of a job is made: the first of this name, or one in the place of one that is gone."""
        if template is None:
            template = dict(making.templates(run.job))[name]
        self._made += 1
        alone = f"pod-{self._made:08}" if run.job.apart else ""
        pod = making.pod(template, name, self._epoch(at), self._made, self._priorities.get(run.job.priority_class), alone)
        if alone:
            self._world.put(POD_GROUP, making.group(run.job, self._epoch(at), alone, pod))
        self._put(run, pod, at)

    def _put(self, run: Run, pod: Obj, at: float) -> None:
        uid = str(pod["metadata"]["uid"])
        self._world.put(POD, pod)
        run.pods[uid], self._owner[uid] = str(pod["metadata"]["name"]), run.index
        self.pending += 1
        if pod["spec"].get("nodeName"):
            self.bound([uid], at)

    def bound(self, uids: Sequence[str], at: float) -> None:
        """Pods got their nodes, and run."""
        runs: dict[int, Run] = {}
        for uid in uids:
            run = self.run_of(uid)
            if run is None:
                continue
            if run.index not in runs:
                run.settle(at)
                runs[run.index] = run
            held = run.up[uid] = self._gauges.held(uid)
            self._totals.used += held
            self.pending -= 1
            if run.outcome.first_pod is None:
                run.outcome.first_pod = at
        for run in runs.values():
            self._pace(run, at)

    def lose(self, uids: Sequence[str], at: float, why: Why) -> list[tuple[Run, str]]:
        """Pods are gone. A gang that is broken by it begins again, all its pods anew; else the lost ones alone are made anew.

        Returns the pods, by job and name, that the caller has to make again: those that are scheduled apart.
        """
        apart, touched = list[tuple[Run, str]](), dict[int, list[str]]()
        for uid in uids:
            run = self.run_of(uid)
            if run is not None:
                setattr(run.outcome, why, getattr(run.outcome, why) + 1)
                touched.setdefault(run.index, []).append(uid)
        for index, gone in touched.items():
            run = self.runs[index]
            run.settle(at)
            before = run.rate
            names = [self._remove(run, uid, at) for uid in gone]
            if before > 0 and run.pace() == 0:
                run.outcome.lost += run.fall_back() * run.outcome.size
                names += [self._remove(run, uid, at) for uid in list(run.pods)] if not run.job.apart else []
            if run.job.apart:
                apart += [(run, name) for name in names]
            else:
                made_after = dict(making.templates(run.job))
                for name in [name for name in made_after if name in set(names)]:
                    self.make(run, name, at, made_after[name])
            self._pace(run, at)
        return apart

    def _remove(self, run: Run, uid: str, at: float) -> str:
        """Take one pod of a job out of the world; its name."""
        held = run.up.pop(uid, None)
        if held is None:
            self.pending -= 1
        else:
            self._totals.used -= held
        task = self._world.cache.tasks[uid]
        group = task.job
        self._world.remove(POD, dict(task.pod))
        if run.job.apart and group is not None:
            self._world.remove(POD_GROUP, dict(group.obj))
        del self._owner[uid]
        return run.pods.pop(uid)

    def run_of(self, uid: str) -> Run | None:
        """The job of a pod; None for pods that are not simulated, or gone."""
        index = self._owner.get(uid)
        return None if index is None else self.runs[index]

    # -- what follows --------------------------------------------------------------------------------------------------

    def _pace(self, run: Run, at: float) -> None:
        """Take a job's pace in after its pods changed."""
        pace = run.pace()
        if pace == run.rate:
            return
        if (pace > 0) != (run.rate > 0):
            self._count(run, -1)
            run.rate = pace
            self._count(run, 1)
        run.rate = pace
        if pace > 0:
            run.outcome.starts += 1 if run.outcome.start is None or run.done == 0 else 0
            if run.outcome.start is None:
                run.outcome.start = at
        run.version += 1
        self._on_pace(run)

    def _count(self, run: Run, sign: int) -> None:
        if run.rate == 0:
            self.waiting += sign
            self.asked += sign * run.outcome.size

    def _epoch(self, at: float) -> float:
        return self._workload.base + at

    # -- to be kept ----------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "runs": [run.state() for run in self.runs.values()],
            "finished": [outcome.as_dict() for outcome in self.finished],
            "unadmitted": self._unadmitted,
            "made": self._made,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take a state in that was kept."""
        for kept in state["runs"]:
            run = self.runs[kept["index"]] = Run.of(self._workload.jobs[kept["index"]], kept)
            self._owner |= dict.fromkeys(run.pods, run.index)
            self.pending += len(run.pods) - len(run.up)
            self._count(run, 1)
        self.finished = [Outcome(**kept) for kept in state["finished"]]
        self._unadmitted, self._made = dict(state["unadmitted"]), state["made"]
