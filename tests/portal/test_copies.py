"""Copies of jobs: lineage, what was changed, what was filled in; usage; tasks that wait for each other; very many pods."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
import yaml
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from cluster import runtime
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import QUEUE
from jobs import writes
from jobs.choices import JobPhase, PodPhase
from jobs.manifest import default
from jobs.models import Job, Pod, Task
from jobs.pages import defaulted, podmap
from jobs.pages.comparing import compare
from jobs.pages.lives import lives
from jobs.pages.taskgraph import graph
from jobs.pages.usage import used
from tests import factories as make
from tests.factories import GPU

pytestmark = pytest.mark.django_db(databases="__all__")


@pytest.fixture
def cluster():
    from cluster.admission import admission

    made = EmbeddedCluster(admission=admission)
    runtime.use(made)
    made.create(QUEUE, {"metadata": {"name": "default"}, "spec": {"weight": 1}})
    yield made
    runtime.use(None)


def html(client: Client, job: Job, query: str = "") -> str:
    response = client.get(reverse("jobs:detail", args=[job.uid]) + query)
    assert response.status_code == 200
    return response.content.decode()


def manifest(name: str = "first") -> dict:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "minAvailable": 2,
            "tasks": [{"name": "w", "replicas": 2, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}],
        },
    }


def test_what_was_filled_in_is_told_exactly_for_what_was_submitted_here(cluster, client, ada):
    uid = writes.submit(manifest(), "ada")["metadata"]["uid"]
    job = Job.objects.get(pk=uid)
    assert defaulted.of(job).is_known
    assert set(job.defaulted) == {
        "/spec/queue", "/spec/schedulerName", "/spec/maxRetry", "/spec/tasks/0/maxRetry", "/spec/tasks/0/minAvailable",
    }  # fmt: skip
    shown = html(client, job, "?tab=yaml")
    lines = shown.partition('<pre class="ba-yaml">')[2].partition("</pre>")[0].split('<span class="by-default"')[1:]
    keys = [re.search(r'<span class="k">(\w+)</span>', line)[1] for line in lines]
    assert sorted(keys) == ["maxRetry", "maxRetry", "minAvailable", "queue", "schedulerName"]


def test_what_somebody_wrote_is_not_called_filled_in_though_it_is_as_by_default(cluster):
    written = manifest()
    written["spec"] |= {"queue": "default", "maxRetry": 3}
    job = Job.objects.get(pk=writes.submit(written, "ada")["metadata"]["uid"])
    assert not {"/spec/queue", "/spec/maxRetry"} & set(job.defaulted)


def test_kubectls_copy_says_what_was_written():
    stored = manifest()
    default(stored)
    written = yaml.safe_load(yaml.safe_dump(manifest()))
    import json

    stored["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(written)}
    found = defaulted.of(make.job("one", manifest=stored))
    assert found.is_known
    assert "/spec/queue" in found.pointers
    assert "/spec/minAvailable" not in found.pointers


def test_where_nobody_saw_it_the_fields_that_are_as_by_default_are_told():
    stored = manifest()
    stored["spec"]["minAvailable"] = 1
    default(stored)
    stored["spec"]["maxRetry"] = 7
    found = defaulted.of(make.job("one", manifest=stored))
    assert not found.is_known
    assert set(found.pointers) == {
        "/spec/queue", "/spec/schedulerName", "/spec/tasks/0/maxRetry", "/spec/tasks/0/minAvailable",
    }  # fmt: skip


def test_lines_of_a_filled_in_field_end_with_it():
    text = """\
spec:
  tasks:
  - name: a
    minAvailable: 2
  - name: b
    policies:
    - event: x
      action: y
    other: 1
"""
    assert defaulted.lines(text, ["/spec/tasks/0/minAvailable"]) == {4}
    assert defaulted.lines(text, ["/spec/tasks/1/policies"]) == {6, 7, 8}
    assert defaulted.lines(text, ["/spec/tasks/1/name", "/spec/none"]) == {5}
    assert defaulted.lines("{", ["/spec"]) == set()


def test_a_clone_says_whose_copy_it_is_and_both_pages_show_it(cluster, client, ada):
    first = Job.objects.get(pk=writes.submit(manifest(), "ada")["metadata"]["uid"])
    draft = client.get(reverse("jobs:submit") + f"?from={first.uid}").content.decode()
    assert "What is changed against first" in draft
    text = (
        re.search(r'<textarea[^>]*id="yaml"[^>]*>\n(.*?)</textarea>', draft, re.S)[1]
        .replace("&#x27;", "'")
        .replace("&quot;", '"')
    )
    obj = yaml.safe_load(text)
    assert obj["metadata"]["annotations"] == {"basalt.dev/cloned-from": first.uid}
    obj["spec"]["tasks"][0]["replicas"] = 3
    posted = client.post(reverse("jobs:submit"), {"do": "submit", "yaml": yaml.safe_dump(obj, sort_keys=False), "shown": "{}"})
    assert posted.status_code == 302, posted.content.decode()[:2000]
    second = Job.objects.get(name="first-2")
    assert second.cloned_from == first.uid
    assert "first-2" in html(client, first, "?tab=lineage")
    assert "came before" in html(client, second, "?tab=lineage")
    compared = client.get(reverse("jobs:compare", args=[first.uid, second.uid])).content.decode()
    assert re.search(r'<tr class="change">.*?replicas: 2.*?replicas: 3', compared, re.S)


def test_lineage_stops_where_it_was_cut_or_runs_in_a_circle(client, ada):
    a, b = make.job("a"), make.job("b")
    a.cloned_from, b.cloned_from = b.uid, a.uid
    lost = make.job("lost", cloned_from="00000000-0000-4000-8000-000000000000")
    make.save([a, b, lost])
    assert html(client, a, "?tab=lineage").count("came before") == 1
    assert "is not known here" in html(client, lost, "?tab=lineage")
    assert client.get(reverse("jobs:compare", args=[a.uid, "unknown"])).status_code == 404


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.lists(st.sampled_from("abcd"), max_size=30))
def test_a_comparison_loses_no_line_of_either_side(left, right):
    pairs = compare("\n".join(left), "\n".join(right))
    if left == right or (len(left) + len(right) == 0):
        assert pairs == []
        return
    for side, lines in (("left", left), ("right", right)):
        shown: list[int] = []
        for pair in pairs:
            if pair.kind == "fold":
                shown += range(shown[-1] + 1 if shown else 1, (shown[-1] if shown else 0) + pair.count + 1)
            elif number := getattr(pair, f"{side}_number"):
                assert getattr(pair, side) == lines[number - 1]
                shown.append(number)
        assert shown == list(range(1, len(lines) + 1))


def test_usage_is_the_time_that_pods_ran_times_what_they_asked():
    job = make.job("one", replicas=4)
    make.save([job])
    task = Task.objects.create(job=job, name="w", position=0, replicas=4, requests={"cpu": 2000, "memory": 4 << 30, GPU: 8000})
    start = job.created_at
    make.save(make.pods(job, 3, task="w", started_at=start, finished_at=start + timedelta(hours=2)))
    make.save(make.pods(job, 1, task="w", created_at=start, started_at=start + timedelta(minutes=30)))
    make.save(make.pods(job, 1, task="w", phase=PodPhase.PENDING))
    (row, total) = used([task], lives(Pod.objects.all()), start + timedelta(hours=1))
    assert row.as_dict() == {"task": "w", "pods": 5, "pod_hours": 6.5, "cpu_hours": 13.0, "gib_hours": 26.0, "gpu_hours": 52.0}
    assert (total.task, total.pods, total.gpu_hours) == ("", 5, 52.0)


@pytest.mark.parametrize("tab", ["overview", "pods", "logs", "events", "yaml", "decisions", "usage", "lineage"])
@pytest.mark.parametrize("phase", [JobPhase.PENDING, JobPhase.RUNNING, JobPhase.COMPLETED])
def test_every_job_keeps_every_page_of_its_history(client, ada, tab, phase):
    job = make.job("old", phase=phase, deleted_at=make.now(), verdict=None)
    make.save([job], make.pods(job, 2, deleted_at=make.now()))
    Task.objects.create(job=job, name="worker", position=0, replicas=2, requests={GPU: 1000})
    assert "old" in html(client, job, f"?tab={tab}")


def test_tasks_that_wait_for_each_other_are_drawn():
    job = make.job("one")
    job.manifest["spec"]["tasks"] = [
        {"name": "load"}, {"name": "train", "dependsOn": {"name": ["load"]}},
        {"name": "test", "dependsOn": {"name": ["train", "load"]}},
    ]  # fmt: skip
    tasks = [
        Task(name="load", replicas=2, counts={"Succeeded": 2}),
        Task(name="train", replicas=3, counts={"Running": 2, "Pending": 1}),
        Task(name="test", replicas=1),
    ]
    drawn = graph(job, tasks)
    assert [(box.part, box.mark, box.word) for box in drawn.boxes] == [
        ("load", "completed", "2 Succeeded"), ("train", "pending", "1 Pending · 2 Running"),
        ("test", "unknown", "waits for the others"),
    ]  # fmt: skip
    assert [line.is_met for line in drawn.lines] == [True, False, False]
    assert drawn.boxes[0].x < drawn.boxes[1].x < drawn.boxes[2].x
    job.manifest["spec"]["tasks"] = [{"name": "load"}]
    assert graph(job, tasks) is None


@given(st.dictionaries(st.integers(0, 400), st.sampled_from(list(PodPhase.values)), max_size=200), st.integers(0, 401))
def test_a_map_has_a_cell_for_each_pod(phases, replicas):
    drawn = podmap.draw("w", replicas, phases)
    found = {}
    for layer in drawn.layers:
        for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)v", layer.path):
            for cell in range(int(width) // podmap.CELL):
                index = int(y) // podmap.CELL * drawn.wide + int(x) // podmap.CELL + cell
                assert index not in found
                found[index] = layer.phase
    wanted = {index: phases.get(index, "Pending") for index in range(max(replicas, max(phases, default=-1) + 1))}
    assert found == wanted
    assert sum(layer.pods for layer in drawn.layers) == drawn.cells == len(wanted)


def test_ten_thousand_pods_are_drawn_in_few_statements_and_a_small_page(client, ada, django_assert_max_num_queries):
    job = make.job("huge", phase=JobPhase.RUNNING, replicas=10_000)
    make.save([job])
    Task.objects.create(job=job, name="worker", position=0, replicas=10_000, counts={"Running": 9_000, "Pending": 1_000})
    make.save(make.pods(job, 9_000))
    with django_assert_max_num_queries(22) as seen:
        shown = html(client, job)
    assert 'data-cells="10000"' in shown
    assert len(shown) < 150_000
    told = [query["sql"] for query in seen.captured_queries]
    assert not [sql for sql in told if '"jobs_pod"."name"' in sql and "LIMIT" not in sql]
    assert "huge-worker-1234" in html(client, job, "?tab=pods&task=worker&index=1234")
    assert html(client, job, "?tab=pods&phase=Failed").count("huge-worker-") == 0
