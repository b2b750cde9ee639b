"""extender: another program has its say about nodes, queues, jobs and evictions, asked over HTTP in Volcano's words."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import orjson

from scheduler.calls import Answer, Refusal
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.plugin import Event, Vote
from scheduler.framework.registry import plugin
from scheduler.model.jobs import JobInfo
from scheduler.model.nodes import Block
from scheduler.model.queues import QueueInfo
from scheduler.model.resources import Floats, Mask
from scheduler.model.tasks import TaskClass, TaskInfo
from scheduler.plugins.extender.config import Config
from scheduler.plugins.extender.wire import Wire

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

logger = logging.getLogger(__name__)

_SUCCESS, _ERROR, _UNSCHEDULABLE = 0, 1, 2
"""Codes of an answer to `predicate`. Only after the last may eviction help."""

Reply = Mapping[str, Any] | None
"""An answer, its keys in lower case; None where there is none that can be read."""


@plugin
class Extender:
    """Arguments, each after `extender.`: `urlPrefix`; `<what>Verb` for whatever is to be asked (`predicate`, `prioritize`,
    `preemptable`, `reclaimable`, `queueOverused`, `jobEnqueueable`, `jobEnqueued`, `jobReady`, `allocateFunc`,
    `deallocateFunc`, `onSessionOpen`, `onSessionClose`), which ends the URL; `httpTimeout` (1s), `ignorable` (false): whether
    to go on as if it had agreed when it fails; `managedResources`, a list: pods that ask for none of them pass by.
    """

    name: ClassVar[str] = "extender"
    _ssn: Session
    _wire: Wire

    def __init__(self, arguments: Arguments) -> None:
        self._config = Config(arguments)
        self._gone: OSError | None = None
        self._held: dict[str, JobInfo] = {}
        self._concerned: dict[TaskClass, bool] = {}
        self._answered: tuple[Any, dict[int, int]] = (None, {})

    def on_session_open(self, ssn: Session) -> None:
        self._ssn, self._wire = ssn, Wire(ssn.dims, ssn.nodes)
        if ssn.post is None or not self._config.verbs:
            return
        if "onSessionOpen" in self._config.verbs and not self._greet() and not self._config.ignorable:
            return
        register: dict[str, Callable[[], None]] = {
            "predicate": lambda: self._add_checks(ssn),
            "prioritize": lambda: ssn.add_task_score(self.name, self._score, self._concerns),
            "preemptable": lambda: ssn.add_preemptable(self.name, self._victims("preemptable")),
            "reclaimable": lambda: ssn.add_reclaimable(self.name, self._victims("reclaimable")),
            "queueOverused": lambda: ssn.add_overused(self.name, self._overused),
            "jobEnqueueable": lambda: ssn.add_enqueueable(self.name, self._enqueueable),
            "jobEnqueued": lambda: ssn.add_enqueued(self.name, self._enqueued),
            "jobReady": lambda: ssn.add_job_ready(self.name, self._ready),
            "allocateFunc": lambda: self._add_handler(ssn),
            "deallocateFunc": lambda: ssn.add_handlers(deallocate=lambda event: self._tell("deallocateFunc", event)),
        }
        for verb, add in register.items():
            if verb in self._config.verbs:
                add()

    def on_session_close(self, ssn: Session) -> None:
        """Say which gangs only the extender holds, and to the extender that the session is over."""
        for uid, job in self._held.items():
            if uid in ssn.verdicts and job.is_pipelined():
                ssn.verdicts[uid] = Verdict(Stage.GANG, Code.EXTENDER, queue=job.queue)
        if ssn.post is not None and "onSessionClose" in self._config.verbs:
            self._ask("onSessionClose", {})

    def _add_checks(self, ssn: Session) -> None:
        for resolvable in (False, True):
            ssn.add_task_predicate(self.name, self.name, self._check(resolvable), self._concerns, resolvable=resolvable)

    def _add_handler(self, ssn: Session) -> None:
        """Tasks that it hears of are placed one by one, so that it can refuse each."""
        ssn.add_handlers(allocate=lambda event: self._tell("allocateFunc", event))
        if "prioritize" not in self._config.verbs:
            ssn.add_task_score(self.name, lambda task, at: np.zeros(len(at)), self._concerns)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _ask(self, verb: str, body: Any) -> Reply:
        return self._ask_all(verb, [body])[0]

    def _ask_all(self, verb: str, bodies: Sequence[Any]) -> list[Reply]:
        """Answers to some calls, as far as they can be read."""
        answers = self._post(verb, bodies)
        found = [None if isinstance(answer, OSError) else _read(answer) for answer in answers]
        if not any(isinstance(answer, OSError) for answer in answers):
            self._say(verb, "its answer is no JSON object" if None in found else "")
        return found

    def _post(self, verb: str, bodies: Sequence[Any]) -> list[Answer]:
        """Once nobody answers, nobody is asked for the rest of the cycle: one that hangs costs a cycle its timeout once."""
        assert self._ssn.post is not None
        if self._gone is not None:
            return [self._gone] * len(bodies)
        texts = [orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS) for body in bodies]
        answers = self._ssn.post(self._config.url(verb), texts, self._config.timeout)
        troubles = [answer for answer in answers if isinstance(answer, OSError)]
        if troubles:
            self._say(verb, str(troubles[0]))
        self._gone = next((trouble for trouble in troubles if not isinstance(trouble, Refusal)), None)
        return answers

    def _say(self, verb: str, trouble: str) -> None:
        """Log trouble when it begins, and that it is over; not each time in between."""
        told: dict[str, str] = self._ssn.memo.setdefault(self.name, {})
        before, told[verb] = told.get(verb, ""), trouble
        if trouble and not before:
            logger.warning("extender %s: %s", self._config.url(verb), trouble)
        elif before and not trouble:
            logger.info("extender %s: it answers again", self._config.url(verb))

    def _greet(self) -> bool:
        ssn, wire = self._ssn, self._wire
        nodes = {ssn.nodes.names[row]: wire.node(row) for row in ssn.nodes.live_rows().tolist()}
        body = {
            "Jobs": {uid: wire.job(job) for uid, job in ssn.jobs.items()},
            "Nodes": nodes,
            "Queues": {name: wire.queue(queue) for name, queue in ssn.queues.items()},
            "NamespaceInfo": wire.namespaces({name: tuple(found) for name, found in ssn.quotas.items()}),
            "RevocableNodes": {name: node for name, node in nodes.items() if node["RevocableZone"]},
            "NodeList": None,
        }
        return self._tells("onSessionOpen", body)

    def _tells(self, verb: str, body: Any) -> bool:
        """Post what is only told; whether it was heard. What it answers does not matter."""
        (answer,) = self._post(verb, [body])
        heard = not isinstance(answer, OSError)
        if heard:
            self._say(verb, "")
        return heard

    def _concerns(self, task: TaskInfo) -> bool:
        found = self._concerned.get(task.cls)
        if found is None:
            found = self._concerned[task.cls] = self._config.concerns(task.cls.spec)
        return found

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _check(self, resolvable: bool) -> Callable[[TaskInfo, Block], Mask]:
        """Rows that it does not refuse, where eviction may help (`resolvable`) or cannot."""

        def check(task: TaskInfo, at: Block) -> Mask:
            codes = self._codes(task, at.rows.tolist())
            return np.array([code == _SUCCESS or (code == _UNSCHEDULABLE) is not resolvable for code in codes], np.bool_)

        return check

    def _codes(self, task: TaskInfo, rows: list[int]) -> list[int]:
        """What it says of each row, asked once as long as nothing moves."""
        moment = (task.uid, self._ssn.nodes.position)
        if self._answered[0] != moment:
            self._answered = (moment, {})
        known = self._answered[1]
        missing = [row for row in rows if row not in known]
        if missing:
            told = self._wire.task(task)
            answers = self._ask_all("predicate", [{"task": told, "node": self._wire.node(row)} for row in missing])
            known.update((row, self._code(answer)) for row, answer in zip(missing, answers, strict=True))
        return [known[row] for row in rows]

    def _code(self, answer: Reply) -> int:
        if answer is None:
            return _SUCCESS if self._config.ignorable else _ERROR
        if not answer.get("status"):
            return _SUCCESS
        code = answer.get("code")
        return code if isinstance(code, int) and code else _ERROR

    def _score(self, task: TaskInfo, at: Block) -> Floats:
        """What it gives each row; nothing where it fails, or leaves the row out."""
        rows, names = at.rows.tolist(), self._ssn.nodes.names
        answer = self._ask("prioritize", {"task": self._wire.task(task), "nodes": [self._wire.node(row) for row in rows]})
        scores = (answer or {}).get("nodescore")
        if not isinstance(scores, Mapping) or (answer or {}).get("errormessage"):
            return np.zeros(len(rows))
        found = (scores.get(names[row]) for row in rows)
        return np.array([float(each) if isinstance(each, (int, float)) else 0.0 for each in found])

    # -- evictions -----------------------------------------------------------------------------------------------------

    def _victims(self, verb: str) -> Callable[[TaskInfo, Sequence[TaskInfo]], list[TaskInfo] | None]:
        def victims(evictor: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo] | None:
            if not self._concerns(evictor):
                return None
            body = {"evictor": self._wire.task(evictor), "evictees": [self._wire.task(task) for task in candidates]}
            answer = self._ask(verb, body)
            if answer is None:
                return []
            if not answer.get("status"):
                return None
            named = answer.get("victims")
            found = {_lower(each).get("uid") for each in named} if isinstance(named, list) else set()
            return [task for task in candidates if task.uid in found]

        return victims

    # -- jobs and queues -----------------------------------------------------------------------------------------------

    def _enqueueable(self, job: JobInfo) -> Vote | Verdict:
        answer = self._ask("jobEnqueueable", {"job": self._wire.job(job)})
        if answer is None:
            vote: Any = 1 if self._config.ignorable else -1
        else:
            vote = answer.get("status")
        if not isinstance(vote, int) or not vote:
            return Vote.ABSTAIN
        return Vote.PERMIT if vote > 0 else Verdict(Stage.ADMISSION, Code.EXTENDER, queue=job.queue)

    def _enqueued(self, job: JobInfo) -> None:
        self._ask("jobEnqueued", {"job": self._wire.job(job)})

    def _overused(self, queue: QueueInfo) -> Verdict | None:
        answer = self._ask("queueOverused", {"queue": self._wire.queue(queue)})
        overused = not self._config.ignorable if answer is None else answer.get("overused") is True
        return Verdict(Stage.QUEUE_LIMIT, Code.EXTENDER, queue=queue.name) if overused else None

    def _ready(self, job: JobInfo) -> bool:
        """A gang is not started while nobody can say that it is ready, unless the extender may be passed over."""
        answer = self._ask("jobReady", {"job": self._wire.job(job)})
        ready = self._config.ignorable if answer is None else answer.get("status") is True
        if ready:
            self._held.pop(job.uid, None)
        else:
            self._held[job.uid] = job
        return ready

    # -- what happens --------------------------------------------------------------------------------------------------

    def _tell(self, verb: str, event: Event) -> None:
        """Tell of tasks that got or lost a node; a refusal of what they got is noted in the event."""
        for task in event.tasks:
            if not self._concerns(task):
                continue
            answer = self._ask(verb, {"task": self._wire.task(task)})
            if answer is None:
                trouble = "" if self._config.ignorable else "it did not answer"
            else:
                trouble = str(answer.get("errormessage") or "")
            if trouble:
                logger.info("extender: %s of %s: %s", verb, task.key, trouble)
                event.refused = True


def _read(answer: bytes) -> Reply:
    try:
        found = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return None
    return _lower(found) if isinstance(found, dict) else None


def _lower(found: Any) -> dict[str, Any]:
    """A mapping with its keys in lower case, which is how Go reads them."""
    return {str(key).lower(): value for key, value in found.items()} if isinstance(found, dict) else {}
