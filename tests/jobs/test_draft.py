"""Form and YAML edit one draft, and neither loses what the other does not know."""

import copy

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.submit import forms, shapes
from jobs.submit.draft import Draft, DraftError
from jobs.submit.fields import JOB_FIELDS, TASK_FIELDS

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


def edit(text, **changes):
    draft = Draft(text)
    shown = forms.read(draft)
    forms.merge(draft, shown, {**shown, **{key.replace("__", "."): value for key, value in changes.items()}})
    return draft


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


@settings(max_examples=60, deadline=None)
@given(MANIFESTS, st.booleans())
def test_yaml_to_form_to_yaml_loses_no_field(manifest, flow):
    text = yaml.safe_dump(manifest, sort_keys=False, default_flow_style=flow, allow_unicode=True)
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
    text = yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True)
    draft = Draft(text)
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
    assert {each.name for each in TASK_FIELDS} == {"name", "replicas", "gpus", "model", "cpu", "memory", "image", "command"}
    assert not any(value for key, value in forms.read(draft).items() if key.startswith("tasks"))
