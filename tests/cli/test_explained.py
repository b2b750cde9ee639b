"""What the command line says of why a job waits, and of what would help."""

from datetime import UTC, datetime

import click
import pytest

from basalt.commands import explain

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


EXPLANATION = {
    "uid": "u", "namespace": "default", "name": "big", "queue": "nlp", "phase": "Pending", "group_phase": "Pending",
    "waits": True, "why": {"en": "Queue limit"}, "statement": {"en": "Queue nlp is full."}, "advice": {"en": "Wait."},
    "verdict": {"stage": "admission", "code": "queue_capability"},
    "numbers": [{"key": "asked", "text": {"en": "72"}, "label": {"en": "GPUs asked"}}],
    "stages": [{"stage": "dependency", "status": "ok", "label": {"en": "Dependency"}},
               {"stage": "admission", "status": "held", "label": {"en": "Admission"}},
               {"stage": "gang", "status": "", "label": {"en": "Gang"}}],
    "rejected": [{"cause": "selector", "count": 64, "label": {"en": "other labels"}}, {"cause": "x", "count": 1, "label": {}}],
    "position": {"queue": {"rank": 2, "of": 9}, "all": {"rank": 41, "of": 100}},
    "unblock": {"state": "done", "tried": 7, "ways": [
        {"text": {"en": "Ask less"}, "effect": {"en": "2 pods start"}, "in_place": True, "evicted": [{"job": "default/a"}],
         "patch": {"spec": {"minAvailable": 2, "tasks": [{"name": "w", "replicas": 3, "limits": {"nvidia.com/gpu": "1"}}]}}}]},
}  # fmt: skip


def explained(**more):
    task = {"name": "w", "replicas": 3, "limits": {"nvidia.com/gpu": "8"}}
    row = {"phase_since": "2026-01-02T03:00:00+00:00", "manifest": {"spec": {"minAvailable": 9, "tasks": [task]}}}
    return [click.unstyle(line) for line in explain.lines(row, {**EXPLANATION, **more}, NOW)]


def test_an_explanation_says_what_why_where_in_line_and_what_would_help():
    assert explained() == [
        "default/big in queue nlp: Pending for 4m5s",
        "",
        "Why        Queue nlp is full.",
        "Numbers    GPUs asked 72",
        "Stages     ✓ Dependency  ✗ Admission  · Gang",
        "Nodes      64 refused: other labels",
        "           1 refused: x",
        "Position   2 of 9 in queue nlp, 41 of 100 in the cluster",
        "Advice     Wait.",
        "",
        "What would unblock it (7 runs of the scheduler):",
        "  1. Ask less → 2 pods start",
        "     gives way: default/a",
        "     on the job as it is: basalt apply -f FILE, "
        """with spec.minAvailable=2 'spec.tasks[0].limits."nvidia.com/gpu"=1' in it""",
    ]


def test_a_way_that_leaves_something_out_says_how_a_copy_does_without_it():
    worker = {"name": "w", "nodeSelector": {"gpu": "a100"}, "affinity": {"nodeAffinity": {"required": {}}, "podAffinity": {}}}
    row = {"phase_since": "2026-01-02T03:00:00+00:00", "manifest": {"spec": {"queue": "q", "tasks": [worker]}}}

    def copied(**change):
        way = {"text": {"en": "Drop it"}, "effect": {"en": "All start"}, "patch": {"spec": {"tasks": [{**worker, **change}]}}}
        said = {**EXPLANATION, "unblock": {"state": "done", "ways": [way]}}
        return click.unstyle([*explain.lines(row, said, NOW)][-1]).strip()

    assert copied(nodeSelector={}) == "in a copy of it: basalt submit FILE --set 'spec.tasks[0].nodeSelector={}'"
    assert (
        copied(affinity={"nodeAffinity": {}, "podAffinity": {}})
        == "in a copy of it: basalt submit FILE --set 'spec.tasks[0].affinity.nodeAffinity={}'"
    )
    assert (
        copied(nodeSelector={"gpu": "h100"}) == "in a copy of it: basalt submit FILE --set 'spec.tasks[0].nodeSelector.gpu=h100'"
    )


@pytest.mark.parametrize(
    ("unblock", "last"),
    [
        ({"state": "working"}, "What would unblock it is still being worked out: ask again, or with a longer --wait."),
        ({"state": "done", "ways": []}, "No single change was found that would start it."),
        ({"state": "none", "ways": []}, "There is nothing to change: it goes on by itself."),
        (None, "Advice     Wait."),
    ],
)
def test_an_explanation_without_ways_says_so(unblock, last):
    assert explained(unblock=unblock)[-1] == last


def test_a_job_too_new_for_the_scheduler_does_not_wait_for_nothing():
    assert explained(waits=False, why={})[1:] == ["The scheduler has not decided about it yet."]
    assert explained(waits=False, why={}, phase="Running")[1:] == ["It waits for nothing."]


def test_of_a_server_that_explains_nothing_the_rows_verdict_is_told():
    verdict = {
        "stage": "node_fit",
        "code": "nodes_insufficient",
        "resource": "memory",
        "asked": 2**31,
        "free": 2**30,
        "rejected": {"s": 3},
    }
    said = explain.of_row({**EXPLANATION, "verdict": verdict, "why": {"en": "No node has room"}})
    row = {"phase_since": "2026-01-02T03:00:00+00:00", "manifest": {}}
    assert list(explain.lines(row, said, NOW))[2:] == [
        "Why        No node has room",
        "Numbers    memory: asked 2Gi, free 1Gi",
        "Stage      node_fit (nodes_insufficient)",
        "Nodes      3 refused: s",
    ]
