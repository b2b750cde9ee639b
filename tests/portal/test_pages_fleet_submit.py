"""The submit page without a browser: both sides of the draft, faults at their place, cloning, bundles, and who may do what."""

import html
import json
import re

import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from cluster import runtime
from cluster.errors import NotFound
from cluster.kinds import JOB, QUEUE
from cluster.models import Event
from jobs.models import Job
from jobs.submit import clone
from jobs.submit.shapes import BY_KEY, SHAPES
from queues.models import Queue
from tests import factories, fleet_rows

pytestmark = pytest.mark.django_db(databases=["default", "cluster"])
PAGE, CHECK = "/submit/", "/submit/validate/"


@pytest.fixture
def fleet(db):
    cluster = fleet_rows.demo_cluster()
    runtime.use(cluster)
    yield cluster
    runtime.use(None)


@pytest.fixture
def lena(client, make_user):
    client.force_login(make_user("lena"), "django.contrib.auth.backends.ModelBackend")
    return client


def fields(page):
    """What a browser without script would post of the page."""
    if isinstance(page, bytes):
        page = page.decode()
    found = {}
    for tag in re.findall(r"<input [^>]*>", page):
        name, value = re.search(r'\bname="([^"]*)"', tag), re.search(r'\bvalue="([^"]*)"', tag)
        if 'type="checkbox"' in tag and " checked" not in tag:
            continue
        if name and name[1] not in ("csrfmiddlewaretoken", "file", "theme", "next", "language"):
            found[name[1]] = html.unescape(value[1]) if value else ""
    for name, text in re.findall(r'<textarea [^>]*name="([^"]*)"[^>]*>\n?(.*?)</textarea>', page, re.DOTALL):
        found[name] = html.unescape(text)
    for name, body in re.findall(r'<select [^>]*name="([^"]*)"[^>]*>(.*?)</select>', page, re.DOTALL):
        chosen = re.search(r'<option value="([^"]*)" selected', body)
        found[name] = html.unescape(chosen[1]) if chosen else ""
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.key)
def test_every_shape_can_be_submitted_as_it_stands(lena, fleet, shape):
    page = lena.get(PAGE, {"shape": shape.key})
    assert page.status_code == 200
    answer = lena.post(PAGE, fields(page.content) | {"do": "submit"})
    assert answer.status_code == 302, re.findall(r'class="hint bad".*?</div>', answer.content.decode(), re.DOTALL)
    job = fleet.get(JOB, f"{shape.key}-1", "default")
    assert job["metadata"]["annotations"]["basalt.dev/owner"] == "lena"
    assert answer["Location"] == reverse("jobs:detail", args=[job["metadata"]["uid"]])
    assert Job.objects.get(uid=job["metadata"]["uid"]).owner == "lena"


def test_a_form_change_reaches_the_yaml_and_the_cluster(lena, fleet):
    posted = fields(lena.get(PAGE, {"shape": "gang"}).content)
    page = lena.post(PAGE, posted | {"tasks.0.replicas": "3", "min_available": "3", "tasks.0.gpus": "2", "do": "sync"})
    posted = fields(page.content)
    assert yaml.safe_load(posted["yaml"])["spec"]["minAvailable"] == 3
    assert "# the gang" in posted["yaml"]
    lena.post(PAGE, posted | {"do": "submit"})
    task = fleet.get(JOB, "gang-1", "default")["spec"]["tasks"][0]
    assert task["replicas"] == 3
    assert str(task["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]) == "2"


def test_a_yaml_change_reaches_the_form_also_beside_a_form_change(lena, fleet):
    posted = fields(lena.get(PAGE, {"shape": "gang"}).content)
    posted["yaml"] = posted["yaml"].replace("queue: default", "queue: prod")
    again = fields(lena.post(PAGE, posted | {"name": "both-1", "do": "sync"}).content)
    assert again["queue"] == "prod"
    assert again["name"] == "both-1"


def test_tasks_are_added_and_removed_without_script(lena, fleet):
    posted = fields(lena.get(PAGE, {"shape": "gang"}).content)
    posted = fields(lena.post(PAGE, posted | {"do": "add-task"}).content)
    assert posted["tasks.1.name"] == "task"
    posted = fields(lena.post(PAGE, posted | {"do": "remove-task-0"}).content)
    assert posted["tasks.0.name"] == "task"
    assert "tasks.1.name" not in posted


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tasks.0.cpu", "2cpus"),
        ("min_available", "9"),
        ("name", "Bad_Name"),
        ("queue", "nowhere"),
        ("tasks.0.replicas", "lots"),
        ("tasks.0.memory", "-1Gi"),
        ("max_retry", "-1"),
    ],
)
def test_a_fault_stands_at_its_field_and_at_its_line_and_nothing_is_created(lena, fleet, key, value):
    posted = fields(lena.get(PAGE, {"shape": "gang"}).content)
    answer = lena.post(PAGE, posted | {key: value, "do": "submit"})
    page = answer.content.decode()
    assert answer.status_code == 422
    box = re.search(rf'name="{re.escape(key)}"[^>]*>', page)[0]
    assert 'aria-invalid="true"' in box
    assert f'value="{value}"' in box
    assert re.search(r'data-line="\d+"', page)
    with pytest.raises(NotFound):
        fleet.get(JOB, "gang-1", "default")


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "- just\n- a list",
        "x",
        "\x00",
        "a: &a [1]\nb: *nope",
        "kind: Job\n" * 3,
        "é" * 100,
        "[" * 5000,
        "a: !!python/object:os.system {}",
    ],
)
def test_what_is_no_manifest_is_refused_with_a_reason_and_kept(lena, fleet, text):
    answer = lena.post(PAGE, {"yaml": text, "do": "submit"})
    assert answer.status_code == 422
    assert "sb-faults" in answer.content.decode()


def test_an_alias_bomb_and_a_large_text_are_refused_quickly(lena, fleet):
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert lena.post(PAGE, {"yaml": bomb, "do": "submit"}).status_code == 422
    assert lena.post(PAGE, {"yaml": "a: " + "x" * 3_000_000}).status_code == 400
    file = SimpleUploadedFile("big.yaml", b"x" * (2**20 + 1))
    assert lena.post(PAGE, {"yaml": "a: 1", "do": "load", "file": file}).status_code == 413
    assert fleet.list(JOB).items == []


def test_a_file_takes_the_drafts_place(lena, fleet):
    text = BY_KEY["mpi"].manifest("from-file", "prod")
    page = lena.post(PAGE, {"yaml": "a: 1", "do": "load", "file": SimpleUploadedFile("job.yaml", text.encode())})
    assert fields(page.content)["yaml"] == text
    assert fields(page.content)["name"] == "from-file"
    page = lena.post(PAGE, {"yaml": "a: 1", "do": "load", "file": SimpleUploadedFile("x", b"\xff\xfe\x00")})
    assert page.status_code == 422
    assert fields(page.content)["yaml"].strip() == "a: 1"


def test_a_taken_name_is_a_conflict_that_keeps_everything(lena, fleet):
    posted = fields(lena.get(PAGE, {"shape": "gang"}).content)
    assert lena.post(PAGE, posted | {"do": "submit"}).status_code == 302
    answer = lena.post(PAGE, posted | {"do": "submit"})
    assert answer.status_code == 422
    assert fields(answer.content)["name"] == "gang-1"
    assert "hint bad" in answer.content.decode()
    assert len(fleet.list(JOB).items) == 1


def test_checking_while_typing_answers_with_parts_and_writes_nothing(lena, fleet):
    posted = fields(lena.get(PAGE, {"shape": "gang"}).content)
    answer = lena.post(CHECK, posted | {"tasks.0.cpu": "2cpus", "side": "form"})
    page = answer.content.decode()
    state = json.loads(html.unescape(re.search(r'data-state="([^"]*)"', page)[1]))
    assert state["inputs"]["f-tasks-0-cpu"]["errors"]
    assert state["inputs"]["f-tasks-0-cpu"]["changed"] or "start" not in posted
    assert "2cpus" in state["yaml"]
    line = state["yaml"].splitlines()[state["faults"][0]["line"] - 1]
    assert "2cpus" in line
    assert 'id="form-side"' not in page
    assert 'id="form-side"' in lena.post(CHECK, posted | {"side": "yaml"}).content.decode()
    assert fleet.list(JOB).items == []
    assert lena.get(CHECK).status_code == 405


def test_a_job_larger_than_any_machine_is_said_at_once(lena, fleet):
    posted = fields(lena.get(PAGE, {"shape": "single"}).content)
    page = lena.post(CHECK, posted | {"tasks.0.gpus": "64", "side": "form"}).content.decode()
    assert "64 GPUs" in page
    assert "8 GPUs" in page


def test_a_job_borrows_only_beyond_what_is_written_as_deserved(lena, fleet):
    gpus = {"nvidia.com/gpu": 1000}
    queue = Queue.objects.filter(name="prod")

    def notes():
        return lena.get(PAGE, {"shape": "gang", "queue": "prod"}).context["preview"].notes

    queue.update(share_allocated=gpus, share_deserved=gpus, deserved={})  # computed from what is asked: it grows with the job
    assert not any("borrow" in note.text for note in notes())
    queue.update(deserved={"nvidia.com/gpu": 3000})
    assert "prod would borrow 2 GPUs, which others may reclaim." in [note.text for note in notes()]


def test_a_clone_brings_the_manifest_without_what_the_cluster_put_in(lena, fleet):
    posted = fields(lena.get(PAGE, {"shape": "gang"}).content)
    lena.post(PAGE, posted | {"do": "submit"})
    job = Job.objects.get(name="gang-1")
    draft = fields(lena.get(PAGE, {"from": job.uid}).content)
    assert draft["name"] == "gang-2"
    for word in ("uid", "resourceVersion", "creationTimestamp", "basalt.dev/owner", "\nstatus"):
        assert word not in draft["yaml"]
    assert lena.post(PAGE, draft | {"do": "submit"}).status_code == 302
    assert lena.get(PAGE, {"from": "no-such-uid"}).status_code == 404


def test_bare_pods_cannot_be_cloned_and_the_page_says_so(lena, fleet):
    row = factories.job("bare", manifest={"kind": "PodGroup", "metadata": {}})
    row.save()
    page = lena.get(PAGE, {"from": row.uid}, follow=True)
    assert page.status_code == 200
    assert "nothing to clone" in page.content.decode()


@pytest.mark.parametrize(
    ("name", "taken", "result"), [("clip-3", {"clip-4"}, "clip-5"), ("clip", set(), "clip-2"), ("x" * 63, set(), "x" * 61 + "-2")]
)
def test_the_next_name_is_free_and_short_enough(name, taken, result):
    assert clone.next_name(name, taken) == result


def test_several_documents_are_applied_together_or_not_at_all(lena, fleet, client, make_user):
    queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: fresh}\nspec: {weight: 1}\n"
    job = BY_KEY["single"].manifest("in-fresh", "fresh")
    page = lena.post(PAGE, {"yaml": f"{queue}---\n{job}", "do": "sync"}).content.decode()
    assert "you may not create Queue fresh" in page
    refused = lena.post(reverse("apply"), {"yaml": f"{queue}---\n{job}"})
    assert refused.status_code == 422  # lena may not make queues
    assert fleet.list(JOB).items == []
    client.force_login(make_user("boss", staff=True), "django.contrib.auth.backends.ModelBackend")
    broken = client.post(reverse("apply"), {"yaml": f"{queue}---\n{job.replace('replicas: 1', 'replicas: -1')}"})
    assert broken.status_code == 422
    with pytest.raises(NotFound):
        fleet.get(QUEUE, "fresh")
    done = client.post(reverse("apply"), {"yaml": f"{queue}---\n{job}"})
    assert done.status_code == 200
    assert fleet.get(JOB, "in-fresh", "default")
    assert fleet.get(QUEUE, "fresh")


def test_text_of_a_draft_is_escaped_everywhere(lena, fleet):
    evil = '"><script>alert(1)</script>'
    posted = fields(lena.get(PAGE, {"shape": "single"}).content)
    for answer in (
        lena.post(PAGE, posted | {"name": evil, "do": "submit"}),
        lena.post(CHECK, posted | {"tasks.0.image": evil, "side": "yaml"}),
        lena.post(PAGE, {"yaml": f"kind: '{evil}'\napiVersion: v1\n---\nkind: X\n", "do": "sync"}),
    ):
        assert "<script>alert(1)" not in answer.content.decode()


def test_the_state_that_the_page_carries_is_not_trusted(lena, fleet):
    posted = fields(lena.get(PAGE, {"shape": "single"}).content)
    for nonsense in ("{", "[]", "7", '{"name": 5}', '{"name": ["x"]}'):
        assert lena.post(PAGE, posted | {"shown": nonsense, "start": nonsense, "do": "sync"}).status_code == 200


def test_no_event_is_left_by_a_check(lena, fleet):
    lena.post(CHECK, fields(lena.get(PAGE).content))
    assert not Event.objects.exists()


def test_a_result_that_is_asked_for_again_leads_back_to_the_draft(lena, fleet):
    assert lena.get(reverse("apply"))["Location"] == PAGE


def test_another_shape_replaces_an_untouched_draft_and_asks_about_an_edited_one(lena, fleet):
    posted = fields(lena.get(PAGE, {"shape": "gang"}).content)
    assert lena.post(PAGE, {**posted, "do": "shape-mpi"}).headers["Location"] == f"{PAGE}?shape=mpi"
    edited = {**posted, "yaml": posted["yaml"].replace("gang-1", "mine")}
    page = lena.post(PAGE, {**edited, "do": "shape-mpi"})
    assert page.status_code == 200
    assert "Begin anew with MPI?" in page.content.decode()
    kept = fields(page.content)
    assert "name: mine" in kept["yaml"]
    again = lena.post(PAGE, {**kept, "do": "shape-mpi"})
    assert "Begin anew with MPI?" in again.content.decode()


@pytest.mark.parametrize(("queue", "why"), [("nowhere", "does not exist"), ("root", "has queues below it")])
def test_a_queue_that_takes_no_jobs_is_not_left_out_in_silence(lena, fleet, queue, why):
    page = lena.get(PAGE, {"shape": "gang", "queue": queue}).content.decode()
    assert f"Queue {queue} {why}" in page


def test_several_documents_are_checked_before_they_are_applied(lena, fleet):
    queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: more}\nspec: {weight: 1}\n"
    nameless = "apiVersion: v1\nmetadata: {}\n"
    page = lena.post(CHECK, {"side": "yaml", "yaml": f"{queue}---\n{nameless}"}).content.decode()
    assert "must name the kind of object" in page
    assert "Apply all" not in page
    page = lena.post(CHECK, {"side": "yaml", "yaml": queue}).content.decode()
    assert "you may not create Queue more" in page
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata: {a: b}\n"
    page = lena.post(CHECK, {"side": "yaml", "yaml": config}).content.decode()
    assert "Apply all" in page
    assert "notes" in page


def test_plugins_are_ticked_and_given_arguments_in_the_form(lena, fleet):
    draft = fields(lena.get(PAGE, {"shape": "gang"}).content)
    assert [key for key, value in draft.items() if key.startswith("plugin.") and value] == []
    asked = {"plugin.mpi": "on", "plugin.mpi.arguments": "--port=5000 '--master=a b'", "do": "sync"}
    ticked = fields(lena.post(PAGE, draft | asked).content)
    assert "    mpi:\n      - --port=5000\n      - --master=a b\n" in ticked["yaml"]
    assert (ticked["plugin.mpi"], ticked["plugin.mpi.arguments"]) == ("on", "--port=5000 '--master=a b'")
    assert ticked["plugin.svc"] == ""
    cleared = fields(lena.post(PAGE, ticked | {"plugin.mpi": "", "plugin.env": "on", "do": "sync"}).content)
    assert "mpi" not in cleared["yaml"]
    assert "  plugins:\n    env: []\n" in cleared["yaml"]
    emptied = fields(lena.post(PAGE, ticked | {"plugin.mpi.arguments": "", "do": "sync"}).content)
    assert "    mpi: []\n" in emptied["yaml"]


def test_a_wrong_argument_is_told_beside_its_plugin(lena, fleet):
    draft = fields(lena.get(PAGE, {"shape": "gang"}).content)
    page = lena.post(PAGE, draft | {"plugin.svc": "on", "plugin.svc.arguments": "--publish=yes", "do": "submit"})
    assert page.status_code == 422
    told = re.search(r'id="e-f-plugin-svc-arguments"[^>]*>(.*?)</div>', page.content.decode())[1]
    assert "there is no argument --publish" in told
    assert "--publish-not-ready-addresses" in told
    assert 'id="e-f-plugin-ssh-arguments" hidden' in page.content.decode()


def test_a_quote_left_open_is_a_fault_and_no_crash(lena, fleet):
    draft = fields(lena.get(PAGE, {"shape": "gang"}).content)
    page = lena.post(PAGE, draft | {"plugin.svc.arguments": "--x='", "do": "submit"})
    assert page.status_code == 422
    assert fields(page.content)["plugin.svc"] == "on"
