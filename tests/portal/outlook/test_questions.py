"""How a draft, another priority and a queue's change move starts, played over the copy of a real cluster."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.kinds import JOB, POD, POD_GROUP, QUEUE
from jobs import operations
from portal.models import StartEstimate
from portal.outlook import questions
from portal.outlook.questions import Move, Outlook, Question
from portal.unblock import line
from portal.unblock.trial import try_job
from tests.portal.unblock.test_trial import DEPLOYED
from tests.portal.unblock.world import Stage, manifest

pytestmark = pytest.mark.django_db(databases="__all__")


def asked(stage: Stage, question: Question) -> Outlook:
    return questions.answer(stage.copy, question, futures=5, pause=0)


def whole(stage: Stage, draft: Any) -> Any:
    return operations.submit(stage.cluster, draft, owner="ann", dry_run=True)


def name_of(stage: Stage, move: Move) -> str:
    return move.uid.partition("/")[2].rsplit("-", 5)[0]


def test_a_draft_that_waits_has_a_rank_and_a_start_after_those_ahead(stage: Stage) -> None:
    found = asked(stage, questions.draft(whole(stage, manifest("draft", 1, cpu=4, gpu=8))))
    assert (found.state, found.futures) == ("done", 5)
    assert found.position == line.Position(rank=3, among=3, place=3, line=3)
    (mine,) = found.mine
    assert mine.before is None
    assert found.at < mine.after.p50 <= mine.after.p90
    assert found.delayed == []
    third = StartEstimate.objects.order_by("-p50")[0]
    assert mine.after.p50 > third.p50.timestamp()  # it comes after all who are there, whose estimates were kept on the way


def test_a_draft_that_starts_now_is_foretold_for_now(stage: Stage) -> None:
    found = asked(stage, questions.draft(whole(stage, manifest("small", 1, cpu=4))))
    assert found.position is None
    assert [each.after.p50 for each in found.mine] == [found.at]


def test_a_draft_that_can_never_start_has_no_estimate(stage: Stage) -> None:
    assert asked(stage, questions.draft(whole(stage, manifest("huge", 1, cpu=4, gpu=64)))).state == "none"


def test_another_priority_comes_earlier_and_says_whom_that_delays(stage: Stage) -> None:
    found = asked(stage, questions.patched([("default", "third")], {"spec": {"priorityClassName": "high"}}))
    (mine,) = found.mine
    assert name_of(stage, mine) == "third"
    assert mine.after.p50 < mine.before.p50
    assert mine.delay < 0
    (delayed,) = found.delayed
    assert name_of(stage, delayed) == "second"
    assert delayed.delay > 0


def test_a_change_of_nothing_moves_nothing(stage: Stage) -> None:
    queue = stage.cluster.get(QUEUE, "default")
    found = asked(stage, questions.queue(queue))
    assert (found.state, found.mine, found.delayed, found.sooner) == ("done", [], [], 0)
    found = asked(stage, questions.patched([("default", "second")], {"spec": {}}))
    assert [each.delay for each in found.mine] == [0.0]
    assert (found.delayed, found.sooner) == ([], 0)


def test_a_queue_that_may_have_nothing_keeps_its_jobs_out_of_sight(stage: Stage) -> None:
    queue = stage.cluster.get(QUEUE, "default")
    found = asked(stage, questions.queue({**queue, "spec": {**queue["spec"], "capability": {"nvidia.com/gpu": "4"}}}))
    assert sorted(name_of(stage, each) for each in found.delayed) == ["second", "third"]
    assert {each.delay for each in found.delayed} == {float("inf")}


def test_a_job_that_waits_no_more_is_not_asked_about(stage: Stage) -> None:
    assert asked(stage, questions.patched([("default", "first")], {"spec": {"priorityClassName": "high"}})).state == "none"
    assert asked(stage, questions.patched([("default", "unknown")], {"spec": {}})).state == "none"


def test_asking_leaves_the_cluster_and_the_copy_as_they_were(stage: Stage) -> None:
    before = [stage.cluster.list(kind).items for kind in (JOB, POD, POD_GROUP, QUEUE)]
    baseline = stage.view(lambda view: (view.baseline.line, view.places))
    asked(stage, questions.draft(whole(stage, manifest("draft", 2, cpu=4, gpu=4, priority="high"))))
    assert [stage.cluster.list(kind).items for kind in (JOB, POD, POD_GROUP, QUEUE)] == before
    assert stage.view(lambda view: (view.baseline.line, view.places)) == baseline


DRAFTS = st.fixed_dictionaries({
    "replicas": st.integers(1, 3), "gpu": st.integers(1, 8), "priority": st.sampled_from(["", "high"]),
    "queue": st.sampled_from(["default", "other"]),
})  # fmt: skip


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draft=DRAFTS)
def test_a_drafts_rank_is_the_one_that_it_gets_when_it_is_submitted(draft: dict[str, Any]) -> None:
    stage = Stage(nodes=[{"name": "n0", "cpu": 64, "memory": "256Gi", "gpu": 8}], queues=[{"name": "other"}], setup=DEPLOYED)
    stage.class_("high", 1000)
    for name, queue in (("first", "default"), ("second", "other"), ("third", "default")):
        stage.submit(manifest(name, 1, queue=queue, cpu=4, gpu=8))
        stage.rest()
    replicas = draft.pop("replicas")
    made = manifest("draft", replicas, cpu=1, **draft)

    def foretold(view: Any) -> tuple[Any, bool]:
        given = whole(stage, made)
        found = Outlook()
        questions.stand(view, questions.draft(given).changes(view), found)
        return found.position, try_job(view, given).starts

    position, starts = stage.view(foretold)
    stage.submit(made)
    stage.world.settle()

    def real(view: Any) -> Any:
        group = view.group_of(stage.job("draft"))
        return line.position(view.baseline, view.cache.jobs, group), group in view.baseline.started

    assert stage.view(real) == (position, starts)
