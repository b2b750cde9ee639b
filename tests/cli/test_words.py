"""What the command line computes by itself: tables, ages, quantities, edits, documents."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from basalt.client.errors import Refused
from basalt.commands import columns, manifest, nodes, view
from basalt.terminal import ages, manifests
from basalt.terminal.table import lines
from basalt.terminal.words import amount, in_own_language

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def job_row(name="train", **more):
    counted = {
        "replicas": 3,
        "min_available": 2,
        "pending": 1,
        "running": 2,
        "succeeded": 0,
        "failed": 0,
        "unknown": 0,
        "retry_count": 1,
    }
    told = {"namespace": "default", "phase": "Running", "created_at": "2026-01-02T12:00:00+00:00", "labels": {}}
    wide = {"queue": "default", "owner": "", "gpus": 0, "why": {}}
    return {"name": name, **told, **counted, **wide, **more}


# --- tables: Volcano's own format strings are the measure ---


def plain(shown):
    return [column for column in shown if not column.wide]


@pytest.mark.parametrize("name", ["a", "train", "a-job-with-a-long-name"])
def test_jobs_are_printed_as_volcano_prints_them(name, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    widest = max(len("Name"), len(name)) + 3
    form = f"%-{widest}s%-15s%-12s%-12s%-12s%-6s%-10s%-10s%-12s%-10s%-12s%-10s"
    titles = ("Name", "Creation", "Phase", "JobType", "Replicas", "Min", "Pending", "Running", "Succeeded", "Failed", "Unknown")
    expected = [
        form % (*titles, "RetryCount"),
        form % (name, ages.local("2026-01-02T12:00:00+00:00"), "Running", "MPI", 3, 2, 1, 2, 0, 0, 0, 1),
    ]
    assert lines(plain(columns.jobs()), [job_row(name, labels={"volcano.sh/job-type": "MPI"})]) == expected


def test_jobs_of_all_namespaces_begin_with_theirs():
    head, row = lines(plain(columns.jobs(everywhere=True)), [job_row(namespace="a-namespace")])
    assert head.startswith(f"{'Namespace':<14}{'Name':<8}{'Creation':<15}")
    assert row.startswith(f"{'a-namespace':<14}{'train':<8}")


def queue_row(name="default", **more):
    groups = {f"groups_{phase}": number for number, phase in enumerate(("inqueue", "pending", "running", "unknown", "completed"))}
    return {"name": name, "weight": 4, "state": "Open", "parent": "root", **groups, **more}


def test_queues_are_printed_as_volcano_prints_them():
    titles = ("Name", "Weight", "State", "Parent", "Inqueue", "Pending", "Running", "Unknown", "Completed")
    form = "%-25s" + "%-8s" * 8
    assert lines(plain(columns.queues()), [queue_row()]) == [form % titles, form % ("default", 4, "Open", "root", 0, 1, 2, 3, 4)]
    form = "%-25s" + "%-8s" * 6
    assert lines(columns.vqueues(), [queue_row()]) == [
        form % tuple(title for title in titles if title not in ("Parent", "Completed")),
        form % ("default", 4, "Open", 0, 1, 2, 3),
    ]


def test_a_name_as_wide_as_its_column_does_not_run_into_the_next():
    assert lines(plain(columns.queues()), [queue_row("q" * 25)])[1].startswith("q" * 25 + " 4")


def pod_row(**more):
    told = {
        "namespace": "default",
        "name": "train-worker-0",
        "word": "Running",
        "phase": "Running",
        "restarts": 0,
        "restarted_at": None,
    }
    return {
        **told,
        "ready": 1,
        "containers": 1,
        "created_at": "2026-01-02T03:00:00+00:00",
        "node": "",
        "gpus": [],
        "reason": "",
        **more,
    }


def test_pods_are_printed_as_volcano_prints_them():
    rows = [pod_row(), pod_row(name="p", restarts=2, restarted_at="2026-01-02T03:02:00+00:00", word="CrashLoopBackOff", ready=0)]
    cells = [("train-worker-0", "1/1", "Running", "0", "4m5s"), ("p", "0/1", "CrashLoopBackOff", "2 (2m5s ago)", "4m5s")]
    titles = ("Name", "Ready", "Status", "Restart", "Age")
    sizes = [max([len(title) + 2, *(len(row[place]) + 8 for row in cells)]) for place, title in enumerate(titles)]
    form = "".join(f"%-{size}s" for size in sizes)
    assert lines(plain(columns.pods(NOW)), rows) == [form % titles, *(form % row for row in cells)]


def test_flows_and_templates_are_printed_as_volcano_prints_them():
    row = {
        "name": "f",
        "namespace": "default",
        "phase": "Succeed",
        "created_at": "2026-01-01T03:04:05+00:00",
        "queue": "",
        "owner": "",
    }
    form = "%-8s%-13s%-11s%-7s"
    expected = [form % ("Name", "Namespace", "Phase", "Age"), form % ("f", "default", "Succeed", "24h")]
    assert lines(plain(columns.flows(NOW)), [row]) == expected
    assert lines(plain(columns.templates()), [row]) == [f"{'Name':<8}{'Namespace':<13}", f"{'f':<8}{'default':<13}"]


def test_a_value_that_would_move_the_cursor_is_shown_harmless():
    assert "\x1b" not in lines(plain(columns.queues()), [queue_row("evil\x1b[2J\nname")])[1]


# --- ages and durations ---


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (600, "10m"), (10_799, "179m"),
        (10_800, "3h"), (12_000, "3h20m"), (28_800, "8h"), (172_799, "47h"), (172_800, "2d"), (180_000, "2d2h"), (691_200, "8d"),
        (86_400 * 729, "729d"), (86_400 * 731, "2y1d"), (86_400 * 365 * 9, "9y"),
    ],
)  # fmt: skip
def test_ages_are_kubernetess(seconds, text):
    assert ages.human(seconds) == text


def test_an_instant_that_is_missing_is_unknown():
    assert ages.since(None, NOW) == "<unknown>"


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("90s", 90), ("1h30m", 5400), ("1.5m", 90), ("2d", 172_800), ("10ms", 0.01)]
)
def test_durations_are_read(text, seconds):
    assert ages.seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "5x", "-5s", "s", "1m 5s", "٣s"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(Refused, match="no duration"):
        ages.seconds(text)


# --- quantities ---


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("1000m", "1"), ("100m", "100m"), ("0.5", "500m"), ("1024Mi", "1Gi"), ("100Mi", "100Mi"), ("1000M", "1G"), ("1e3", "1k"),
        ("128000Ki", "125Mi"), (None, "0"), ("0", "0"), ("nonsense", "nonsense"), (2, "2"),
    ],
)  # fmt: skip
def test_quantities_in_kubernetess_form(text, form):
    assert manifest.canonical(text) == form


@given(st.integers(0, 10**12), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_the_form_of_a_quantity_keeps_its_value(number, unit):
    form = manifest.canonical(f"{number}{unit}")
    assert manifest.canonical(form) == form
    match = manifest._QUANTITY.fullmatch(form)
    assert match
    assert Decimal(match[1]) * manifest._FACTORS[match[2] or ""] == Decimal(number) * manifest._FACTORS[unit]


def test_amounts_of_resources():
    assert manifest.resources("cpu=1000m,nvidia.com/gpu=8") == {"cpu": "1000m", "nvidia.com/gpu": "8"}
    assert manifest.resources("") == {}
    for wrong in ("cpu", "cpu=1=2", "=1", "cpu=x", "cpu=1,,memory=1"):
        with pytest.raises(Refused):
            manifest.resources(wrong)


@pytest.mark.parametrize(
    ("units", "resource", "text"),
    [
        (1500, "cpu", "1.5"),
        (8000, "nvidia.com/gpu", "8"),
        (2**30, "memory", "1Gi"),
        (3 * 2**29, "memory", "1.5Gi"),
        (7, "pods", "7"),
    ],
)
def test_amounts_for_people(units, resource, text):
    assert amount(units, resource) == text


def test_texts_come_in_the_language_of_the_terminal(monkeypatch):
    both = {"en": "waits", "zh-hans": "等待"}
    assert in_own_language(both) == "waits"
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert in_own_language(both) == "等待"
    assert in_own_language({"en": "waits"}) == "waits"
    assert in_own_language(None) == ""


# --- edits ---

OBJ = {"metadata": {"labels": {}}, "spec": {"tasks": [{"replicas": 1}, {"replicas": 2}]}}


def test_values_are_set_where_the_path_leads():
    found = manifests.edited(
        OBJ, ["spec.tasks[1].replicas=4", 'metadata.labels."a.b/c"=x', "spec.queue=gold", "spec.plugins.env=[]", "spec.note=a=b"]
    )
    assert found["spec"] == {"tasks": [{"replicas": 1}, {"replicas": 4}], "queue": "gold", "plugins": {"env": []}, "note": "a=b"}
    assert found["metadata"]["labels"] == {"a.b/c": "x"}
    assert OBJ["spec"]["tasks"][1]["replicas"] == 2


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ("spec.queue", "is no edit"),
        ("=3", "is no edit"),
        ("spec.tasks[2].replicas=1", "has 2 entries"),
        ("spec[0]=1", "is no list"),
        ("spec.tasks.name=1", "no mapping"),
        ("spec.tasks[x]=1", "no step"),
    ],
)
def test_an_edit_that_leads_nowhere_is_refused(edit, why):
    with pytest.raises(Refused, match=why):
        manifests.edited(OBJ, [edit])


# --- documents ---


def test_documents_keep_their_lines():
    text = "# first\n---\nkind: A\nmetadata: {name: a}\n---\n# second\nkind: B\nmetadata:\n  name: b\n  namespace: n\n"
    one, two = manifests.documents(text, "f")
    assert (one.kind, one.name, one.line, two.kind, two.name, two.namespace, two.line) == ("A", "a", 3, "B", "b", "n", 7)
    assert one.text.splitlines().index("kind: A") + 1 == 3
    assert two.text.splitlines().index("kind: B") + 1 == 7


def test_dates_stay_text_and_json_is_read_too():
    (found,) = manifests.documents("kind: A\nmetadata: {name: 2026-01-01}\n", "f")
    assert found.name == "2026-01-01"
    (found,) = manifests.documents(json.dumps({"kind": "A", "metadata": {"generateName": "a-"}}), "f")
    assert (found.kind, found.name) == ("A", "a-")


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("a: 1\n b: 2\n", 2, "mapping values"),
        ("a: [1,\nb: 2\n", 3, "flow"),
        ("\ta: 1\n", 1, "token"),
        ('{"a": 1,\n"b" 2}', 2, ""),
        ("kind: A\n---\n- 1\n", 3, "a list"),
        ("just text\n", 1, "a text"),
    ],
)
def test_what_is_no_manifest_is_refused_with_its_line(text, line, why):
    with pytest.raises(Refused) as refusal:
        manifests.documents(text, "f")
    (fault,) = refusal.value.faults
    assert fault.line == line
    assert why in fault.detail


def test_nothing_in_a_file_and_a_file_of_bytes(tmp_path):
    with pytest.raises(Refused, match="holds no manifest"):
        manifests.documents("# nothing\n", "f")
    (tmp_path / "bytes").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(Refused, match="line 2: this is not UTF-8"):
        manifests.read(str(tmp_path / "bytes"))
    (tmp_path / "large").write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(Refused, match="more than 1 MiB"):
        manifests.read(str(tmp_path / "large"))
    with pytest.raises(Refused, match=r"holds no \.yaml"):
        manifests.files([str(tmp_path / "nowhere"), str(_empty(tmp_path))])


def _empty(tmp_path):
    (tmp_path / "empty").mkdir()
    return tmp_path / "empty"


# --- view ---


def test_events_are_told_as_volcano_tells_them():
    event = {
        "type": "Normal", "reason": "Pulled", "source": "kubelet", "message": " m ", "count": 3, "about_name": "train",
        "first_seen": "2026-01-02T03:00:05+00:00", "last_seen": "2026-01-02T03:04:00+00:00",
    }  # fmt: skip
    head, titles, _, row = view.events([event], NOW)
    assert (head, titles.split()) == ("Events:", ["Type", "Reason", "Age", "Form", "Message"])
    assert row == f"{'Normal':<15}\t{'Pulled':<40}\t{'5s (x3 over 4m)':<30}\t{'kubelet':<40}\tm"
    assert list(view.events([], NOW)) == ["Events: \t<none>"]


# --- drains ---


@pytest.mark.parametrize(
    ("left", "said"), [(1, "draining, 1 pod left"), (2, "draining, 2 pods left"), (0, "draining, 0 pods left")]
)
def test_a_drain_counts_what_is_left(left, said):
    assert nodes._says({"state": "draining", "left": left, "held": [], "held_count": 0, "trouble": ""}) == said
