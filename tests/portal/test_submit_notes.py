"""Jobs that are well-formed and yet cannot start as things stand: told at their field and line, by form and REST alike."""

import html
import json
import re

import pytest
from django.utils import translation

from cluster.kinds import LIMIT_RANGE, PRIORITY_CLASS, RESOURCE_QUOTA
from jobs.submit.preview import preview
from jobs.submit.shapes import BY_KEY
from queues.models import Queue
from tests.portal.test_pages_fleet_submit import CHECK, PAGE, fields, fleet, lena  # noqa: F401 - fixtures

pytestmark = [pytest.mark.django_db(databases=["default", "cluster"]), pytest.mark.usefixtures("fleet")]
POD = "/spec/tasks/0/template/spec"
GPUS = f"{POD}/containers/0/resources/limits/nvidia.com~1gpu"


@pytest.fixture
def told(lena):  # noqa: F811
    """What is found of the gang shape with some inputs changed: pointer → (kind, text)."""

    def look(**changes):
        posted = fields(lena.get(PAGE, {"shape": "gang"}).content)
        page = lena.post(PAGE, posted | {key.replace("__", "."): value for key, value in changes.items()} | {"do": "sync"})
        return {note.pointer: (note.kind, note.text) for note in page.context["preview"].notes}

    return look


def test_no_node_has_so_many_gpus(told):
    kind, text = told(tasks__0__gpus="64")[GPUS]
    assert kind == "bad"
    assert re.fullmatch(r"A pod of task worker asks 64 GPUs; the largest machine for it, \S+, has 8 GPUs\.", text)


def test_all_machines_together_are_too_few_for_the_gang(told):
    kind, text = told(tasks__0__gpus="8", tasks__0__replicas="500", min_available="500")["/spec/tasks/0/replicas"]
    assert kind == "bad"
    assert re.fullmatch(r"All machines together could hold \d+ pods of task worker; the gang needs 500\.", text)


def test_a_selector_that_nobody_fits_stands_at_the_selector(told):
    assert told(tasks__0__selector="disk=none")[f"{POD}/nodeSelector"][0] == "bad"


def test_a_queues_capability_and_what_is_left_of_it(told):
    queue = Queue.objects.filter(name="default")
    queue.update(capability={"nvidia.com/gpu": 2000}, share_allocated={}, share_inqueue={})
    assert told()["/spec/queue"] == ("bad", "Asks 4 GPUs; default may never hold more than 2 GPUs.")
    assert told(min_available="2", tasks__0__minimum="2")["/spec/queue"] == (
        "warn",
        "All its pods ask 4 GPUs; default may never hold more than 2 GPUs: some of them wait for ever.",
    )
    queue.update(capability={"nvidia.com/gpu": 8000}, share_allocated={"nvidia.com/gpu": 6000})
    assert told()["/spec/queue"] == ("warn", "default has 2 GPUs left below its capability: the job will wait.")
    queue.update(capability={"memory": 2**30}, share_allocated={})
    assert told()["/spec/queue"][0] == "bad"


def test_a_capability_further_up_counts_too(told):
    Queue.objects.filter(name="default").update(parent="prod", capability={})
    Queue.objects.filter(name="prod").update(capability={"nvidia.com/gpu": 1000})
    kind, text = told()["/spec/queue"]
    assert (kind, text) == ("bad", "Asks 4 GPUs; prod may never hold more than 1 GPU.")


def test_quotas_and_ranges_of_the_namespace(told, fleet):  # noqa: F811
    fleet.create(RESOURCE_QUOTA, {"metadata": {"name": "small", "namespace": "default"}, "spec": {"hard": {"requests.cpu": "3"}}})
    assert told()["/metadata/namespace"] == ("bad", "The gang asks 8 CPUs; quota small of the namespace allows 3 CPUs.")
    limits = [{"type": "Container", "max": {"memory": "1Gi"}, "min": {"cpu": "4"}}, {"type": "Pod", "max": {"cpu": "1"}}]
    fleet.create(LIMIT_RANGE, {"metadata": {"name": "range", "namespace": "default"}, "spec": {"limits": limits}})
    found = told()
    assert found[f"{POD}/containers/0/resources/limits/memory"][1] == (
        "A container of task worker asks 4 GiB of memory; the namespace allows it at most 1 GiB of memory."
    )
    assert found[f"{POD}/containers/0/resources/limits/cpu"][0] == "bad"
    assert not any("quota" in text for _kind, text in told(namespace="elsewhere").values())


def test_a_quota_that_is_used_up_makes_it_wait(told, fleet):  # noqa: F811
    quota = {"metadata": {"name": "used", "namespace": "default"}, "spec": {"hard": {"requests.nvidia.com/gpu": "4"}}}
    fleet.create(RESOURCE_QUOTA, quota)
    fleet.patch_status(RESOURCE_QUOTA, "used", "default", {"used": {"requests.nvidia.com/gpu": "3"}})
    assert told()["/metadata/namespace"] == ("warn", "The gang asks 4 GPUs; of quota used of the namespace 1 GPU is left.")


def test_a_priority_class_that_is_not_there(told, fleet):  # noqa: F811
    assert told(priority="gone")["/spec/priorityClassName"][0] == "warn"
    fleet.create(PRIORITY_CLASS, {"metadata": {"name": "gone"}, "value": 5})
    assert "/spec/priorityClassName" not in told(priority="gone")


def test_it_stands_beside_the_field_and_at_the_line(lena):  # noqa: F811
    posted = fields(lena.get(PAGE, {"shape": "gang"}).content)
    page = lena.post(CHECK, posted | {"tasks.0.gpus": "64", "side": "form"}).content.decode()
    state = json.loads(html.unescape(re.search(r'data-state="([^"]*)"', page)[1]))
    (text, kind), *_others = state["inputs"]["f-tasks-0-gpus"]["hints"]
    assert "64 GPUs" in text
    assert kind == "bad"
    fault = next(each for each in state["faults"] if "64 GPUs" in each["message"])
    assert fault["severity"] == "warning"
    assert "nvidia.com/gpu: 64" in state["yaml"].splitlines()[fault["line"] - 1]


def test_rest_and_page_are_told_the_same_in_both_languages(lena, fleet):  # noqa: F811
    user = lena.get("/jobs/").wsgi_request.user
    text = BY_KEY["gang"].manifest("big").replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 64")
    for language in ("en", "zh-hans"):
        answer = lena.post(
            "/api/v1/jobs?dryRun=All", text, content_type="application/yaml", headers={"accept-language": language}
        ).json()
        with translation.override(language):
            assert answer["findings"] == preview(user, answer["manifest"]).as_list()
        assert answer["findings"][0]["pointer"] == GPUS
    assert "64" in answer["findings"][0]["text"]
    assert "GPUs" not in answer["findings"][0]["text"]
    made = lena.post("/api/v1/jobs", text, content_type="application/yaml")
    assert made.status_code == 201
    assert made.json()["findings"][0]["kind"] == "bad"


def test_refusals_of_rest_are_in_the_readers_language(lena, fleet):  # noqa: F811
    text = BY_KEY["gang"].manifest("big").replace("minAvailable: 4", "minAvailable: 9")
    told = {
        language: lena.post("/api/v1/jobs", text, content_type="application/yaml", headers={"accept-language": language}).json()[
            "errors"
        ][0]["detail"]
        for language in ("en", "zh-hans")
    }
    assert told["en"] == "9 is above the 4 replicas of all tasks: at most that many"
    assert told["zh-hans"].startswith("9 超过")
