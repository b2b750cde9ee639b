"""Blueprints without a database: schemas, placeholders, locks; what comes out, and what is refused."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cluster import documents
from cluster.errors import ApiError
from jobs.blueprints import definition, locks, parameters
from jobs.blueprints.filling import FillError, evaluate, fill
from jobs.blueprints.patterns import pattern_fault

SCHEMA = {
    "type": "object",
    "required": ["image"],
    "properties": {
        "image": {"type": "string", "pattern": "^[a-z0-9/:.]+$", "maxLength": 30},
        "workers": {"type": "integer", "minimum": 1, "maximum": 8, "default": 2},
        "rate": {"type": "number", "multipleOf": 0.5, "default": 1},
        "debug": {"type": "boolean", "default": False},
        "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
    },
}


def told(values):
    return {fault.pointer: fault.message for fault in parameters.faults(SCHEMA, values)}


@pytest.mark.parametrize(
    ("values", "where", "said"),
    [
        ({}, "/image", "is required"),
        ({"image": "A b"}, "/image", "must have the form ^[a-z0-9/:.]+$"),
        ({"image": "a" * 31}, "/image", "must have at most 30 characters"),
        ({"image": "a", "workers": 0}, "/workers", "must be 1 or more, not 0"),
        ({"image": "a", "workers": 9}, "/workers", "must be 8 or less, not 9"),
        ({"image": "a", "workers": "many"}, "/workers", "must be a whole number"),
        ({"image": "a", "workers": True}, "/workers", "must be a whole number"),
        ({"image": "a", "rate": 0.3}, "/rate", "must be a multiple of 0.5"),
        ({"image": "a", "debug": "yes"}, "/debug", "must be true or false"),
        ({"image": "a", "size": "huge"}, "/size", "must be one of small, large"),
        ({"image": "a", "other": 1}, "/other", "is no parameter of this blueprint"),
    ],
)
def test_each_rule_of_a_schema_has_its_own_sentence_at_its_parameter(values, where, said):
    assert told(values) == {where: said}


def test_sound_values_pass_and_the_texts_of_a_form_become_values():
    posted = parameters.posted(
        SCHEMA, {"p.image": "a:1", "p.workers": " 3 ", "p.rate": "1.5", "p.debug": "true", "p.size": "large"}
    )
    assert posted == {"image": "a:1", "workers": 3, "rate": 1.5, "debug": True, "size": "large"}
    assert told(posted) == {}
    assert parameters.posted(SCHEMA, {"p.image": "", "p.workers": ""}) == {}


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ([], ""),
        ({"type": "array"}, ""),
        ({"type": "object", "$ref": "http://example.com/x"}, "/$ref"),
        ({"type": "object", "properties": {"A": {"type": "string"}}}, "/properties/A"),
        ({"type": "object", "properties": {"a": {"type": "object"}}}, "/properties/a/type"),
        ({"type": "object", "properties": {"a": {"type": "string", "minimum": 1}}}, "/properties/a/minimum"),
        ({"type": "object", "properties": {"a": {"type": "integer", "minimum": 3, "default": 1}}}, "/properties/a/default"),
        ({"type": "object", "properties": {"a": {"type": "integer", "minimum": "x"}}}, "/properties/a/minimum"),
        ({"type": "object", "properties": {}, "required": ["a"]}, "/required"),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}, "/properties/a/pattern"),
        ({"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 0, "default": 1}}}, "/properties/a/multipleOf"),
        ({"type": "object", "properties": {"a": {"type": "integer", "x-translations": "b"}}}, "/properties/a/x-translations"),
        (
            {"type": "object", "properties": {"a": {"type": "integer", "x-translations": {"zh-hans": [1]}}}},
            "/properties/a/x-translations/zh-hans",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "integer", "x-translations": {"zh-hans": {"title": 1}}}}},
            "/properties/a/x-translations/zh-hans",
        ),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "(a+)+$"}}}, "/properties/a/pattern"),
    ],
)
def test_a_schema_that_makes_no_form_is_refused_at_its_place(schema, where):
    assert where in [fault.pointer for fault in parameters.schema_faults(schema)]


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|a)*b",
        "(a*)*",
        "a*a*a*a*b",
        "(?:x+x+)+y",
        r"(\w+\s?)*$",
        "a?" * 20 + "b",
        "(?:(?:a?)?)" * 22 + "b",
        "(?:a?){30}b",
    ],
)
def test_patterns_that_could_take_for_ever_are_refused(pattern):
    assert pattern_fault(pattern)


@pytest.mark.parametrize("pattern", ["^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", r"^\d{1,3}Gi$", "^(a|b|c)$", r"^[^:]+:v\d+$"])
def test_patterns_that_people_write_are_taken(pattern):
    assert pattern_fault(pattern) == ""


@pytest.mark.parametrize(("pattern", "many"), [("[ab]?" * 18 + "c", 5), (r"\w+@\w+", 5), ("^a", 60), (r"^[^:]+:v\d+$", 60)])
def test_patterns_of_one_blueprint_are_bounded_together(pattern, many):
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string", "pattern": pattern} for n in range(many)}}
    is_anchored = pattern.startswith("^")
    assert [fault.pointer for fault in parameters.schema_faults(schema)] == ([] if is_anchored else ["/properties"])


@pytest.mark.parametrize("pattern", ["(?<=a*)b", "(", "[z-a]"])
def test_what_cannot_be_compiled_is_no_pattern(pattern):
    assert pattern_fault(pattern).startswith("is no regular expression")


@pytest.mark.parametrize("inside", ["1e999", "1e999 - 1e999", "1e999 * 0", "9" * 40, "n", "n + 0.5"])
def test_no_number_is_too_large_for_a_manifest(inside):
    with pytest.raises(FillError, match="larger than 1000000000000000"):
        fill("a: ${{ %s }}" % inside, {"n": 10**400})  # noqa: UP031


@pytest.mark.parametrize("value", [10**400, -(10**16), float("inf"), float("nan")])
def test_values_are_numbers_that_can_be_reckoned_with(value):
    schema = {"type": "object", "properties": {"n": {"type": "number", "multipleOf": 0.5}}}
    assert [(fault.pointer, fault.code) for fault in parameters.faults(schema, {"n": value})] == [("/n", "maximum")]
    assert parameters.faults(schema, {"n": 10**15}) == []


def test_titles_are_shown_in_the_language_that_is_read():
    from django.utils import translation

    nodes = {"type": "integer", "title": "Nodes", "x-translations": {"zh-hans": {"title": "节点"}}}
    schema = {"type": "object", "properties": {"n": nodes}}
    assert parameters.shown(schema, {})[0].label == "Nodes"
    with translation.override("zh-hans"):
        assert parameters.shown(schema, {})[0].label == "节点"


TEXT = """\
# kept
spec:
  minAvailable: ${{ workers + 1 }}  # also kept
  tasks:
    - name: "w-${{ size }}"
      command: |
        run --n ${{ workers }} ${HOME}
"""


def test_placeholders_become_values_and_comments_stay():
    text, tree = fill(TEXT, {"workers": 3, "size": "large"})
    assert tree["spec"]["minAvailable"] == 4
    assert tree["spec"]["tasks"][0] == {"name": "w-large", "command": "run --n 3 ${HOME}\n"}
    assert "# kept" in text
    assert "minAvailable: 4  # also kept" in text
    assert yaml.safe_load(text) == tree


PRINTED = st.characters(exclude_categories=("C", "Z"), include_characters=" \n\t")


def test_what_cannot_be_printed_is_refused():
    assert told({"image": "a\x00"})["/image"]
    assert parameters.faults({"type": "object", "properties": {"s": {"type": "string"}}}, {"s": "a\x07"})


@given(st.text(PRINTED, max_size=40))
def test_no_value_can_become_more_than_a_text_in_the_job(value):
    text, tree = fill(TEXT, {"workers": 1, "size": value})
    assert tree["spec"]["tasks"][0]["name"] == f"w-{value}"
    assert documents.load(text)[0].obj == tree
    assert set(tree) == {"spec"}


@pytest.mark.parametrize("value", ["x\nspec: {evil: 1}", "x\n      evil: 1", '"', "'", "# no comment", "- a", "yes", "1", ""])
def test_values_that_look_like_yaml_stay_texts(value):
    text, tree = fill("a: ${{ v }}\nb: |\n  one ${{ v }}\n", {"v": value})
    assert tree == {"a": value, "b": f"one {value}\n"}
    assert documents.load(text)[0].obj == tree


@pytest.mark.parametrize(
    ("text", "values", "result"), [("a", {"a": 2}, 2), ("a * 2 + b", {"a": 2, "b": 3}, 7), ("a - 1", {"a": 0.5}, -0.5)]
)
def test_sums_differences_and_products(text, values, result):
    assert evaluate(text, values) == result


@pytest.mark.parametrize(
    "text", ["a / 2", "a ** 9", "f(a)", "a.b", "a[0]", "'x'", "a if a else b", "", "a +", "__import__('os')"]
)
def test_nothing_else_is_worked_out(text):
    with pytest.raises(FillError):
        evaluate(text, {"a": 1, "b": 2})


def test_a_text_is_not_reckoned_with():
    with pytest.raises(FillError):
        evaluate("a + 1", {"a": "2"})


JOB = {"kind": "Job", "metadata": {"name": "x"}, "spec": {"tasks": [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 1}]}}


def changed(locked, **spec):
    asked = json.loads(json.dumps(JOB))
    asked["spec"] |= spec
    return [fault.pointer for fault in locks.changed(locked, asked, JOB)]


def test_a_locked_field_that_differs_is_named_and_nothing_else():
    tasks = [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 5}]
    assert changed(["/spec/tasks/*/replicas"], tasks=tasks) == ["/spec/tasks/1/replicas"]
    assert changed(["/spec/tasks/0"], tasks=tasks) == []
    assert changed(["/spec/priorityClassName"], priorityClassName="high") == ["/spec/priorityClassName"]
    assert changed(["/spec/queue"], queue="default") == []  # what it would be anyway
    assert changed(["/spec/queue"], queue="other") == ["/spec/queue"]


def test_tasks_that_are_added_or_taken_away_do_not_slip_past_a_lock_of_all():
    more = [*JOB["spec"]["tasks"], {"name": "c", "replicas": 1}]
    assert changed(["/spec/tasks/*/replicas"], tasks=more) == ["/spec/tasks/2/replicas"]
    assert changed(["/spec/tasks/*/replicas"], tasks=JOB["spec"]["tasks"][:1]) == ["/spec/tasks/1/replicas"]


def test_the_example_is_sound_and_its_job_keeps_its_comment():
    found = definition.read(definition.example("mine"))
    assert found.name == "mine"
    assert "# the gang: together or not at all" in found.job
    tree = fill(found.job, parameters.complete(found.parameters, {}))[1]
    assert tree["spec"]["minAvailable"] == 3
    assert tree["spec"]["tasks"][1]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 1


@pytest.mark.parametrize(
    ("old", "new", "where", "at"),
    [
        ("kind: Blueprint", "kind: Job", "/kind", "kind: Job"),
        ("  name: mine\nspec:", "  name: Mine!\nspec:", "/metadata/name", "  name: Mine!"),
        ("  title:", "  titel:", "/spec/titel", "  titel: PyTorch, several nodes"),
        ("${{ workers }}", "${{ wrokers }}", "/spec/job/spec/tasks/1/replicas", "          replicas: ${{ wrokers }}"),
        ("    - /spec/policies", "    - /metadata/name", "/spec/locked/0", "    - /metadata/name"),
        ("    kind: Job\n", "    kind: Pod\n", "/spec/job", "  job:"),
        ("    queues: []", "    queues: all", "/spec/audience/queues", "    queues: all"),
    ],
)
def test_faults_of_a_definition_name_place_and_line(old, new, where, at):
    source = definition.example("mine").replace(old, new, 1)
    with pytest.raises(ApiError) as caught:
        definition.read(source)
    found = {fault.pointer: fault.message for fault in caught.value.fields}
    assert found[where].startswith(f"line {source.splitlines().index(at) + 1}: ")
