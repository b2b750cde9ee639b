"""Form and YAML edit one draft, and neither loses what the other does not know."""

import copy

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cluster import documents
from jobs.submit import forms, shapes
from jobs.submit.draft import Draft, DraftError
from jobs.submit.fields import JOB_FIELDS, TASK_FIELDS
from jobs.submit.lists import TASK_LISTS
from tests.jobs.drafts import edit

COMMENTED = """\
# our nightly run
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: clip-4        # keep this name
  annotations: {team.example/ticket: "V-2291"}
spec:
  x-unknown: [1, {deep: true}]
  minAvailable: 2
  tasks:
  - name: master
    replicas: 1
    template: &pod
      spec:
        containers:
        - name: train
          image: 'registry.local/clip:4.2'
          resources:
            limits:
              cpu: "96"
              nvidia.com/gpu: 8   # all of them
  - name: worker
    replicas: 1
    template: *pod
"""


def test_a_changed_number_changes_only_its_own_characters():
    draft = edit(COMMENTED, min_available="3")
    assert draft.text == COMMENTED.replace("minAvailable: 2", "minAvailable: 3")


def test_an_untouched_form_changes_nothing_at_all():
    assert edit(COMMENTED).text == COMMENTED


def test_a_new_field_keeps_comments_order_and_unknown_fields():
    draft = edit(COMMENTED, queue="research")
    for line in ("# our nightly run", "# keep this name", "# all of them", "registry.local/clip:4.2", '"V-2291"'):
        assert line in draft.text
    assert yaml.safe_load(draft.text)["spec"].pop("queue") == "research"
    assert yaml.safe_load(draft.text)["spec"]["x-unknown"] == [1, {"deep": True}]
    assert list(draft.root) == ["apiVersion", "kind", "metadata", "spec"]


def test_a_change_behind_an_alias_stays_where_it_was_made():
    draft = edit(COMMENTED, tasks__1__gpus="4")
    again = Draft(draft.text)
    assert forms.read(again)["tasks.0.gpus"] == "8"
    assert forms.read(again)["tasks.1.gpus"] == "4"


def test_a_quantity_that_was_quoted_stays_text():
    draft = edit(COMMENTED, tasks__0__cpu="48")
    assert (
        yaml.safe_load(draft.text)["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "48"
    )


def test_what_is_no_number_is_written_as_typed_so_that_the_rules_can_say_so():
    assert edit(COMMENTED, min_available="many").get(("spec", "minAvailable")) == "many"


def test_an_emptied_field_is_removed_with_the_mappings_it_leaves_empty():
    text = edit(COMMENTED, topology="hard", tier="2").text
    draft = edit(text, topology="")
    assert draft.get(("spec", "networkTopology")) is None
    assert draft.get(("spec", "tasks", 0, "name")) == "master"


def test_a_policy_for_an_event_is_added_changed_and_removed_beside_others():
    text = COMMENTED + "  policies:\n  - event: TaskCompleted\n    action: CompleteJob\n"
    added = edit(text, on_eviction="RestartJob")
    assert [p["event"] for p in added.get(("spec", "policies"))] == ["TaskCompleted", "PodEvicted"]
    removed = edit(added.text, on_eviction="")
    assert [p["event"] for p in removed.get(("spec", "policies"))] == ["TaskCompleted"]


def test_a_form_edit_and_a_yaml_edit_made_at_once_both_survive():
    shown = forms.read(Draft(COMMENTED))
    draft = Draft(COMMENTED.replace("replicas: 1", "replicas: 7", 1))
    forms.merge(draft, shown, {**shown, "queue": "prod"})
    assert draft.get(("spec", "queue")) == "prod"
    assert draft.get(("spec", "tasks", 0, "replicas")) == 7


def test_seconds_read_and_write_in_days():
    text = edit(COMMENTED, keep="7d").text
    assert yaml.safe_load(text)["spec"]["ttlSecondsAfterFinished"] == 604_800
    assert forms.read(Draft(text))["keep"] == "7d"


@pytest.mark.parametrize("text", ["a: [", "- a\n- b\n", "a: b: c", "x" * 10, "a: &a [*a, *b]"])
def test_text_that_is_no_manifest_says_where_it_breaks(text):
    with pytest.raises(DraftError):
        Draft(text)


@pytest.mark.parametrize("shape", shapes.SHAPES, ids=lambda shape: shape.key)
def test_every_shape_fills_the_form_and_survives_it(shape):
    text = shape.manifest("probe-1", "research")
    draft = Draft(text)
    values = forms.read(draft)
    assert values["name"] == "probe-1"
    assert values["queue"] == "research"
    assert values["tasks.0.image"]
    forms.merge(draft, {}, values)
    assert draft.text == text


def test_real_manifests_lose_nothing_when_a_field_is_changed(shared_dir):
    seen = 0
    for path in sorted((shared_dir / "data" / "manifests").glob("job-*.yaml")):
        for text in path.read_text().split("\n---\n"):
            before = yaml.safe_load(text)
            if not before or before.get("kind") != "Job" or "tasks" not in before.get("spec", {}):
                continue
            seen += 1
            assert edit(text).text == text.replace("\r\n", "\n")
            draft = edit(text, queue="elsewhere", tasks__0__gpus="5", on_eviction="AbortJob")
            after = yaml.safe_load(draft.text)
            assert after["spec"]["queue"] == "elsewhere"
            assert forms.read(draft)["tasks.0.gpus"] == "5"
            comments = [
                line.split("#", 1)[1] for line in text.splitlines() if "#" in line and '"' not in line and "'" not in line
            ]
            assert all(comment.strip() in draft.text for comment in comments)
            assert _without(after) == _without(before)
    assert seen > 10


def _without(manifest):
    """The manifest less the fields that the test above changes."""
    rest = copy.deepcopy(manifest)
    rest["spec"].pop("queue", None)
    rest["spec"].pop("policies", None)
    rest["spec"]["tasks"][0]["template"]["spec"]["containers"][0].pop("resources", None)
    return rest


KEYS = st.text("abcdefgh-./", min_size=1, max_size=8)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.text(max_size=20), st.floats(allow_nan=False, allow_infinity=False)
)
TREES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12)
TASKS = st.lists(
    st.fixed_dictionaries(
        {"name": KEYS},
        optional={
            "replicas": SCALARS,
            "template": TREES | st.fixed_dictionaries({"spec": st.fixed_dictionaries({"containers": TREES})}),
            "x": TREES,
        },
    ),
    max_size=3,
)
MANIFESTS = st.fixed_dictionaries(
    {
        "apiVersion": st.just("batch.volcano.sh/v1alpha1"),
        "kind": st.just("Job"),
        "metadata": st.fixed_dictionaries({"name": KEYS}, optional={"x": TREES}),
    },
    optional={
        "spec": st.fixed_dictionaries(
            {}, optional={"tasks": TASKS | TREES, "queue": SCALARS, "policies": TREES, "unknown": TREES}
        )
    },
)


def _written(manifest, **style) -> str:
    """With anchors, as people write them, and only such text as PyYAML itself reads back as it was."""
    text = yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True, **style)
    assume(yaml.safe_load(text) == manifest)
    return text


@settings(max_examples=60, deadline=None)
@given(MANIFESTS, st.booleans())
def test_yaml_to_form_to_yaml_loses_no_field(manifest, flow):
    text = _written(manifest, default_flow_style=flow)
    draft = Draft(text)
    values = forms.read(draft)
    forms.merge(draft, values, dict(values))
    assert draft.text == text.replace("\r\n", "\n")


@settings(max_examples=60, deadline=None)
@given(
    MANIFESTS,
    st.sampled_from([field.name for field in JOB_FIELDS]),
    st.sampled_from(["7", "AbortJob", "a b: #c", "'", "yes", "null", "[1"]),
)
def test_one_changed_field_leaves_every_other_place_as_it_was(manifest, name, value):
    draft = Draft(_written(manifest))
    values = forms.read(draft)
    field = next(each for each in JOB_FIELDS if each.name == name)
    try:
        forms.merge(draft, values, {name: value})
    except DraftError:
        return  # the manifest has something else where the field's parent should be: said, and nothing changed
    target = field.at(draft, ())
    after = yaml.safe_load(draft.text)
    assert _leaves(manifest, target) == _leaves(after, target)


def _leaves(tree, target, path=()):
    """Every leaf outside the place that was edited."""
    if path and path == target[: len(path)] and not isinstance(tree, dict | list):
        return {}
    if path == target or (path and path[-1] == "policies" and "policies" in target):
        return {}
    if isinstance(tree, dict) and tree:
        items = tree.items()
    elif isinstance(tree, list) and tree:
        items = enumerate(tree)
    else:
        return {} if path == target[: len(path)] else {path: tree}
    return {key: leaf for step, item in items for key, leaf in _leaves(item, target, (*path, step)).items()}


def test_every_task_field_reads_nothing_from_a_task_that_is_no_task():
    draft = Draft("spec: {tasks: [3, null, {template: [1]}, {template: {spec: {containers: {}}}}]}")
    assert {"name", "replicas", "gpus", "env", "tolerations"} <= {each.name for each in (*TASK_FIELDS, *TASK_LISTS)}
    assert not any(value for key, value in forms.read(draft).items() if key.startswith("tasks"))


@pytest.mark.parametrize("text", ["a\n\x85b", "\x85", "a\u2028b\n", "\n\u2029"])
def test_line_breaks_that_are_rare_are_kept(text):
    draft = Draft("a: 1\n")
    draft.set(("b",), {"c": text})
    assert yaml.safe_load(draft.text) == {"a": 1, "b": {"c": text}}


@pytest.mark.parametrize("text", ["._", "-._", ".__e+1", "0x_", "0b_", "0o_", "-_", "9" * 5000])
def test_what_only_looks_like_a_number_is_text(text):
    draft = Draft(f"a: {text}\n")
    draft.set(("b",), {"c": 1})
    assert documents.load(draft.text)[0].obj == {"a": text, "b": {"c": 1}}


NAMES = st.text("abcXYZ_09.", min_size=1, max_size=6)
WORDS = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="=:,+"), min_size=1, max_size=8)
ENTRIES = st.lists(
    st.fixed_dictionaries({"name": NAMES, "value": WORDS}) | st.fixed_dictionaries({"name": NAMES, "valueFrom": TREES}),
    max_size=4,
)
TAINTS = st.lists(
    st.fixed_dictionaries({"key": WORDS}, optional={"operator": st.sampled_from(["Exists", "Equal"]), "value": WORDS})
    | st.fixed_dictionaries({"operator": st.just("Exists"), "tolerationSeconds": st.integers(0, 9)}),
    max_size=3,
)
PODS = st.fixed_dictionaries(
    {
        "containers": st.lists(
            st.fixed_dictionaries({"name": NAMES}, optional={"env": ENTRIES, "x": TREES}), min_size=1, max_size=2
        )
    },
    optional={"tolerations": TAINTS, "nodeSelector": st.dictionaries(WORDS, WORDS, max_size=3), "volumes": TREES, "x": TREES},
)


@settings(max_examples=60, deadline=None)
@given(
    PODS,
    st.sampled_from([field.name for field in (*TASK_FIELDS, *TASK_LISTS)]),
    st.sampled_from(["7", "a=b", "x:NoSchedule", "8Gi", "'", "a b: #c", "one\ntwo=2", ""]),
)
def test_one_changed_field_of_a_task_leaves_the_other_fields_and_all_unknown_ones(pod, name, text):
    manifest = {
        "spec": {"tasks": [{"name": "t", "x-mine": [1], "template": {"spec": pod}}, {"name": "u", "template": {"spec": pod}}]}
    }
    draft = Draft(_written(manifest))
    before = forms.read(draft)
    forms.merge(draft, before, {f"tasks.0.{name}": text})
    after = forms.read(Draft(draft.text))
    related = {"gpus", "gpu_kind", "vgpu_memory", "vgpu_cores"} if name in ("gpus", "gpu_kind") else {name}
    for key, value in before.items():
        if key not in {f"tasks.0.{each}" for each in related}:
            assert after[key] == value, key
    tasks = yaml.safe_load(draft.text)["spec"]["tasks"]
    assert tasks[1] == manifest["spec"]["tasks"][1]
    assert tasks[0]["x-mine"] == [1]
    if "x" in pod:
        assert tasks[0]["template"]["spec"]["x"] == pod["x"]
    if name == "env" and "env" in pod["containers"][0]:
        kept = [each for each in pod["containers"][0]["env"] if "valueFrom" in each]
        assert [each for each in tasks[0]["template"]["spec"]["containers"][0].get("env", []) if "valueFrom" in each] == kept


@pytest.mark.parametrize("value", ["2026-99-99", "2026-01-01T99:99:99Z", "!!bool foo", "!!int x", "!!float x", "!!omap 1"])
def test_a_value_that_is_not_what_it_looks_like_is_no_draft_but_no_failure(value):
    with pytest.raises(DraftError, match="cannot be read"):
        Draft(f"a: {value}\n")
