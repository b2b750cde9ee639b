"""The configuration file: Volcano's spelling, and errors that name the line."""

import pytest

from scheduler import conf
from scheduler.conf import Arguments, ConfError


def faults(text: str) -> list[tuple[int, str]]:
    with pytest.raises(ConfError) as caught:
        conf.load(text)
    return [(fault.line, fault.message) for fault in caught.value.faults]


def test_the_built_in_default_is_volcanos():
    loaded = conf.load()
    assert loaded.actions == ("enqueue", "allocate", "backfill")
    assert [[option.name for option in tier] for tier in loaded.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder"],
    ]


def test_switches_have_their_defaults_and_their_exact_spelling():
    text = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n    enablePreemptable: false\n'
    option = conf.load(text).tiers[0][0]
    assert not option.on("enablePreemptable")
    assert option.on("enabledOverused")
    assert not option.on("enableHierarchy")
    assert faults(text.replace("enablePreemptable", "enabledPreemptable"))[0][0] == 5


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("actions: [\n", 2, "not YAML"),
        ("", 0, "empty"),
        ("tiers: []\n", 1, "actions is missing"),
        ('actions: "allocate"\n', 1, "tiers is missing"),
        ('\nactions: "allocate, dance"\ntiers: []\n', 2, "'dance' is unknown"),
        ('actions: "allocate"\ntiers:\n- plugins:\n  - name: ganged\n', 4, "'ganged' is unknown"),
        ('actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n- plugins:\n  - name: gang\n', 6, "listed twice"),
        ('actions: "allocate"\ntiers:\n- plugins:\n  - {}\n', 4, "no name"),
        ('actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n    enableJobOrder: maybe\n', 5, "true or false"),
        (
            'actions: "allocate"\ntiers:\n- plugins:\n  - name: binpack\n    arguments:\n      binpack.weight: x\n',
            6,
            "whole number",
        ),
        ('actions: "allocate"\nactions: "allocate"\ntiers: []\n', 2, "given twice"),
        ('actions: "allocate"\ntiers: {}\n', 2, "must be a list"),
        ("actions: 3\ntiers: []\n", 1, "must be a text"),
        ('actions: "allocate"\ntiers: []\nconfigurations:\n- name: fly\n', 4, "is no action"),
    ],
)
def test_a_fault_is_reported_with_its_line(text, line, words):
    found = faults(text)
    assert any(at == line and words in message for at, message in found), found


def test_hierarchical_drf_and_proportion_in_one_tier_are_refused():
    text = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: drf\n    enableHierarchy: true\n  - name: proportion\n'
    assert [line for line, message in faults(text) if "put them into different tiers" in message] == [4]
    apart = text.replace("  - name: proportion", "- plugins:\n  - name: proportion")
    assert [len(tier) for tier in conf.load(apart).tiers] == [1, 1]


def test_a_wrong_argument_is_reported_with_its_line():
    text = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: binpack\n    arguments:\n      binpack.weight: x\n'
    assert faults(text)[0][0] == 6
    assert "whole number" in faults(text)[0][1]


def test_all_faults_come_at_once():
    text = 'actions: "allocate, dance"\ntiers:\n- plugins:\n  - name: ganged\n  - name: gang\n    enableX: true\n'
    assert [line for line, _ in faults(text)] == [1, 4, 6]


def test_arguments_are_read_by_type():
    arguments = Arguments("p", {"i": 3, "f": 2.5, "b": "true", "t": "x", "bad": True}, {"bad": 7})
    assert arguments.integer("i", 1) == 3
    assert arguments.number("i", 1.0) == 3.0
    assert arguments.number("f", 1.0) == 2.5
    assert arguments.boolean("b", False)
    assert arguments.text("t", "") == "x"
    assert arguments.integer("absent", 9) == 9
    with pytest.raises(ConfError, match="line 7"):
        arguments.integer("bad", 1)
    with pytest.raises(ConfError):
        arguments.number("t", 1.0)


@pytest.mark.parametrize(
    ("argument", "why"),
    [
        ("volumebinding.bindTimeoutSeconds: -1", "must not be negative"),
        ("volumebinding.shape: 3", "must be a list of points"),
        ("predicate.DynamicResourceAllocationEnable: maybe", "must be true or false"),
    ],
)
def test_arguments_about_volumes_and_devices_are_read_strictly(argument: str, why: str) -> None:
    text = f'actions: "allocate"\ntiers:\n- plugins:\n  - name: predicates\n    arguments:\n      {argument}\n'
    with pytest.raises(conf.ConfError, match=f"line 6: predicates: argument {argument.partition(':')[0]}: .*{why}"):
        conf.load(text)


HEAD = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: '


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            f"{HEAD}binpack\n    arguments:\n      binpack.weight: {10**29}\n",
            "line 6: a number here",
        ),
        (f"{HEAD}binpack\n    arguments:\n      binpack.weight: {'9' * 5000}\n", "line 6: a number here"),
        (
            f"{HEAD}nodeorder\n    arguments:\n      leastrequested.weight: -{2**31}\n",
            "line 6: nodeorder: argument leastrequested",
        ),
        (
            f"{HEAD}resource-strategy-fit\n    arguments:\n      resources: {{cpu: {{weight: {10**400}}}}}\n",
            "line 6: a number here",
        ),
        (
            "actions: preempt\nconfigurations:\n- name: preempt\n- name: preempt\ntiers: []\n",
            "line 4: action 'preempt' is configured",
        ),
    ],
)
def test_numbers_beyond_counting_and_actions_named_twice_are_refused(text, fault):
    with pytest.raises(ConfError) as raised:
        conf.load(text)
    assert str(raised.value).startswith(fault)


def test_what_is_repeated_by_name_does_not_grow_without_bounds():
    head = f"{HEAD}nodeorder\n    arguments:\n      a0: &a0 [x, x]\n"
    grown = "".join(f"      a{step}: &a{step} [{', '.join([f'*a{step - 1}'] * 9)}]\n" for step in range(1, 12))
    with pytest.raises(ConfError) as raised:
        conf.load(f"{head}{grown}      nodeaffinity.weight: *a11\n")
    assert "line 10: the value unfolds to more than 10000 values" in [str(fault) for fault in raised.value.faults]
    assert conf.load(f"{head}      a1: [*a0, *a0]\n").tiers[0][0].arguments.value("a1", "") == [["x", "x"]] * 2


def test_what_is_nested_too_deeply_is_refused():
    with pytest.raises(ConfError, match="not YAML: values are nested too deep"):
        conf.load("{" * 3000)


def test_tiers_repeated_by_name_are_not_read_again_and_again():
    plugins = "&p {name: gang}" + ", *p" * 1500
    assert faults(f"actions: enqueue\ntiers:\n- &t {{plugins: [{plugins}]}}\n" + "- *t\n" * 1500) == [
        (3, "the value unfolds to more than 10000 values")
    ]


def test_what_stands_in_itself_is_read_once():
    assert faults("actions: enqueue\ntiers: &a [*a]\n") == [(2, "tier 1 must be a mapping of names to values")]


def test_the_first_of_very_many_faults_are_told():
    found = faults("actions: enqueue\ntiers: [" + "a," * 5000 + "]\n")
    assert len(found) == 101
    assert (found[0][0], found[-1]) == (2, (0, "and 4900 more faults"))


def test_a_text_of_any_length_is_not_even_read():
    assert faults("#" * (conf.LONGEST + 1)) == [(0, "A configuration has at most 100000 characters")]
