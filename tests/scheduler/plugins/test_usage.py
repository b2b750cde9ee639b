"""usage: measured nodes, and estimates for pods that no measurement can show yet."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler import conf
from scheduler.conf import Arguments, ConfError
from scheduler.framework.plugin import Event
from scheduler.model.tasks import TaskInfo, TaskStatus
from scheduler.plugins.usage import Usage
from tests.scheduler.plugins.world import World, block

NOW = 1000.0  # of the session: 1970-01-01T00:16:40Z


def world(*measured: str) -> World:
    """Nodes of 10 cpus and 10 Gi by their annotation; an empty one is not measured."""
    at = World()
    for i, text in enumerate(measured):
        row = at.node(f"n{i}", cpu=10, memory="10Gi")
        node = at.nodes.objects[row]
        node["metadata"]["annotations"] = {"basalt.dev/usage": text} if text else {}
        node["status"]["capacity"] = {"cpu": "10", "memory": "10Gi"}
    return at


def used(cpu: float, memory: float, time: str = "1970-01-01T00:16:00Z") -> str:
    return f'{{"cpu": {cpu}, "memory": {memory}, "time": "{time}"}}'


def look(at: World, task: TaskInfo, session: Any) -> tuple[list[bool], list[float]]:
    """Which rows pass, and their scores."""
    (check,) = session.functions("task_predicate") or [None]
    (score,) = session.functions("task_score") or [None]
    passed = check.check(task, block(at)).tolist() if check else []
    return passed, [float(value) for value in score.score(task, block(at))] if score else []


def new(at: World, **asked: Any) -> TaskInfo:
    return at.task(at.job("new"), at.cls(asked or {"cpu": 1}))


def test_busy_nodes_are_refused_and_idle_ones_preferred() -> None:
    at = world(used(20, 40), used(81, 0), used(0, 80.1), used(80, 80), "")
    task = new(at)
    passed, scores = look(at, task, at.session("usage"))
    assert passed == [True, False, False, True, True]
    # (1 − 0.2 + 1 − 0.4) / 2 × 100 × 5
    assert scores == pytest.approx([350, 297.5, 299.75, 100, 0])


@pytest.mark.parametrize(
    "text", [used(99, 99, "1970-01-01T00:11:39Z"), "{", '{"cpu": "x"}', used(-1, 0), '{"cpu": 99, "memory": 99}']
)
def test_what_is_old_or_cannot_be_read_says_nothing(text: str) -> None:
    at = world(text, used(99, 99))
    passed, scores = look(at, new(at), at.session("usage"))
    assert passed == [True, False]
    assert scores[0] == 0


def test_without_any_measurement_nothing_is_registered() -> None:
    at = world("", "")
    assert look(at, new(at), at.session("usage")) == ([], [])


def test_weights_and_thresholds_are_arguments() -> None:
    at = world(used(20, 40))
    words = {"usage.weight": 1, "cpu.weight": 3, "memory.weight": 1, "thresholds": {"cpu": 19}}
    assert look(at, new(at), at.session(("usage", words))) == ([False], pytest.approx([75]))


def test_what_was_just_placed_counts_by_its_estimate() -> None:
    at = world(used(0, 0), used(60, 60), used(0, 0))
    placed = at.job("placed")
    for row in (0, 1):
        at.task(placed, at.cls({"cpu": 2, "memory": "1Gi"}), node=row, status=TaskStatus.BOUND)
    session = at.session(("usage", {"usage.weight": 1}))
    # 2 × 0.7 = 1.4 cpus of 10 and 0.07 of memory; on the second node × 1.2, since it is loaded.
    _, scores = look(at, new(at), session)
    assert scores == pytest.approx([100 * (1 - (0.14 + 0.07) / 2), 100 * (0.4 - (0.168 + 0.084) / 2), 100])


@pytest.mark.parametrize(("started", "counts"), [("1970-01-01T00:16:11Z", True), ("1970-01-01T00:16:09Z", False)])
def test_a_running_pod_counts_until_measurements_show_it(started: str, counts: bool) -> None:
    at = world(used(0, 0))
    task = at.task(at.job("old"), at.cls({"cpu": 2}), node=0)
    task.pod["status"] = {"startTime": started}  # type: ignore[index]
    _, scores = look(at, new(at), at.session(("usage", {"usage.weight": 1, "memory.weight": 0})))
    assert scores == pytest.approx([86 if counts else 100])


def test_limits_count_by_the_burst_and_bound_the_estimate() -> None:
    spec = {"containers": [{"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}}]}
    for estimator, cpus in (({"burst_ratio": 0.5}, 2.4), ({"request_ratio": 1, "burst_ratio": 1}, 4.0)):
        at = world(used(0, 0))
        at.task(at.job("placed"), at.cls({"cpu": 2}, dict(spec)), node=0, status=TaskStatus.BOUND)
        words = {"usage.weight": 1, "memory.weight": 0, "estimator": estimator}
        _, scores = look(at, new(at), at.session(("usage", words)))
        assert scores == pytest.approx([100 * (1 - cpus / 10)])


def test_pods_that_ask_nothing_count_by_fixed_amounts() -> None:
    at = world(used(0, 0))
    at.task(at.job("placed"), at.cls({}), node=0, status=TaskStatus.BOUND)
    _, scores = look(at, new(at), at.session(("usage", {"usage.weight": 1, "memory.weight": 0})))
    assert scores == pytest.approx([97.5])


def test_events_count_and_count_off_exactly() -> None:
    at = world(used(0, 0), used(0, 0))
    task = new(at, cpu=5)
    session = at.session(("usage", {"usage.weight": 1, "memory.weight": 0}))
    task.job.move([task], TaskStatus.ALLOCATED)  # type: ignore[union-attr]
    at.nodes.place([task], [1])
    session.allocated(Event(task.job, [task], task.request))
    assert look(at, task, session)[1] == pytest.approx([100, 65])
    at.nodes.withdraw([task])
    session.deallocated(Event(task.job, [task], task.request))
    assert look(at, task, session)[1] == pytest.approx([100, 100])


@pytest.mark.parametrize(
    "words",
    [
        {"usage.weight": -1}, {"thresholds": {"cpu": 101}}, {"thresholds": {"gpu": 1}}, {"thresholds": 80},
        {"estimator": {"risk_factor": 0.5}}, {"estimator": {"be_cpu": "much"}}, {"estimator": {"be_mem": -1}},
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense_are_errors(words: dict[str, Any]) -> None:
    with pytest.raises(ConfError):
        Usage(Arguments("usage", words))


@pytest.mark.parametrize(
    ("metrics", "line", "says"),
    [
        ("type: prometheus_adaptor", 6, "known are prometheus, elasticsearch"),
        ("tls.insecureSkipVerify: perhaps", 6, "true or false"),
        ("elasticsearch.password: 12", 6, "must be a text"),
        ("adress: http://x", 6, "'adress' is unknown"),
        ("address: ftp://x", 6, "http://"),
        ("interval: soon", 6, "duration"),
        ("interval: 0s", 6, "longer than nothing"),
    ],
)
def test_a_source_that_makes_no_sense_is_an_error_with_its_line(metrics: str, line: int, says: str) -> None:
    text = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: usage\nmetrics:\n  '
    with pytest.raises(ConfError) as caught:
        conf.load(text + metrics + "\n")
    assert [(fault.line, says in fault.message) for fault in caught.value.faults] == [(line, True)]
