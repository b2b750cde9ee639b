"""Scenario files: every word known and told with its place, time and cycles as said, and failures that say what was seen."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from portal.scenario import FileError, load, play, words
from portal.scenario.expect import CHECKS
from portal.scenario.html import Page
from portal.scenario.pages import Portal
from portal.scenario.steps import STEPS
from tests.portal.cases import SUBMIT, seen, text


def faults(content: str) -> list[str]:
    with pytest.raises(FileError) as error:
        load(content)
    return [str(fault) for fault in error.value.faults]


# --- files --------------------------------------------------------------------------------------------------------


def test_every_word_of_the_vocabulary_is_played_or_known_to_be_later():
    player = {"check", "repeat", "repeat_steps"} | words.PAGE_WORDS
    assert words.STEPS.keys() - STEPS.keys() <= player
    assert words.EXPECT.keys() - CHECKS.keys() == set()
    assert STEPS.keys() <= words.STEPS.keys()
    assert Portal is not None


def test_unknown_words_are_told_with_their_place_all_at_once():
    content = text("- submit: {job: a, tasks: {w: {replicas: 1, cpus: 2}}}\n- jump: true", "- runs: {a: 1}", "{machines: []}")
    found = faults(content)
    assert [fault.split(":")[0] for fault in found] == ["line 2", "line 4", "line 5", "line 7"]
    assert "case x.setup: 'machines' is no word that is known here; known are actions, hypernodes" in found[0]
    assert "case x.steps[1].submit.tasks.w: 'cpus'" in found[1]
    assert "'jump' is no step; known are check, clock" in found[2]
    assert "case x.expect[1]: 'runs'" in found[3]


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("- schedule: soon", "'soon' is not one of until-quiet, one-cycle"),
        ("- finish: {pod: p}", "exit must be given"),
        ("- submit: {job: a, tasks: {w: {replicas: two}}}", "replicas: must be a whole number"),
        ("- submit: {job: a, tasks: {w: {replicas: 1, cpu: 1_000}}}", "1_000"),
        ("- submit: {job: a, tasks: {w: {replicas: 1, memory: -1Gi}}}", "negative"),
        ("- settle: true\n  clock: {to: '01:00'}", "a step is a mapping with one word, this has 2"),
        ("- clock: {to: '25:00'}", "'25:00' must be a time of day"),
        ("- settle: false", "must be true"),
        ("- repeat: {times: 2, fresh: true}\n- settle: true", "repeat is the last step"),
        ("- check: {}", "must expect something"),
    ],
)
def test_wrong_values_are_told(steps, said):
    (found,) = faults(text(steps, "- running: {a: 1}"))
    assert said in found


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "line 1: there is no case"),
        ("- id: [", "not YAML"),
        ("{id: x}", "cases: must be a list"),
        ("- id: x\n  id: y", "'id' is given twice"),
        (text("- settle: true", "- running: {a: 0}") * 2, "the id 'x' is given twice"),
        (text("- settle: true", "- running: {a: 0}", "{actions: [fly]}"), "there is no action 'fly'"),
        (text("- settle: true", "- running: {a: 0}", "{plugins: [[gang, magic]]}"), "there is no scheduler plugin 'magic'"),
        (text("- settle: true", "- running: {a: 0}", "{plugins: [[{name: gang, enableX: true}]]}"), "'enableX' is no word"),
        (
            text("- repeat_steps: {times: 1, steps: &s [{repeat_steps: {times: 1, steps: *s}}]}", "- running: {a: 0}"),
            "nested too deep",
        ),
    ],
)
def test_files_that_are_no_scenario_are_told(content, said):
    assert any(said in fault for fault in faults(content)), said


def test_names_are_taken_as_written():
    (case,) = load(text("- submit: {job: on, tasks: {y: {replicas: 1}}}", "- running: {on.y: 0}"))
    assert case.steps[0].value["job"] == "on"
    assert list(case.steps[0].value["tasks"]) == ["y"]


# --- play ---------------------------------------------------------------------------------------------------------


def test_a_gang_is_scheduled_runs_and_ends_when_a_step_says_so():
    steps = f"""
    - {SUBMIT}
    - schedule: until-quiet
    - check: {{running: {{a: 2, a.w: 2}}, job_phase: {{a: Running}}, bound_count: 2}}
    - finish_some: {{job: a, count: 1, exit: 0}}
    - settle: true
    - check: {{running: {{a: 1}}, pods: {{a: [a-w-0, a-w-1]}}}}
    - finish_all: {{job: a, exit: 0}}
    - settle: true
    """
    expect = """
    - {job_phase: {a: Completed}, succeeded: {a: 2}, pods_created: {a: 2}, evicted_count: 0}
    - never: {running_at_least: {a: 3}}
    - never: {running: {a.w: 1}, job_phase: {a: Pending}}
    """
    assert seen(textwrap.dedent(steps), textwrap.dedent(expect)) == ""


def test_evictions_are_counted_and_named():
    (case,) = load(
        b"""
- id: x
  setup:
    nodes: [{name: n1, cpu: 1, memory: 4Gi}]
    queues: [{name: default, weight: 1}]
    priorities: {high: 1000, low: 10}
    actions: [allocate, preempt, backfill]
    plugins: [[priority, {name: gang, enablePreemptable: false}, conformance, predicates, proportion, nodeorder]]
  steps:
    - submit: {job: l, queue: default, priority: low, min: 1, preemptable: true, tasks: {w: {replicas: 1, cpu: 1}}}
    - schedule: until-quiet
    - submit: {job: h, queue: default, priority: high, min: 1, tasks: {w: {replicas: 1, cpu: 1}}}
    - schedule: until-quiet
  expect:
    - {running: {h: 1, l: 0}, evicted: [l-w-0], evicted_count: 1}
"""
    )
    assert play(case).seen == []


def test_a_failure_says_what_was_seen():
    said = seen(
        f"- {SUBMIT}\n- schedule: until-quiet", "- {running: {a: 3}, job_phase: {a: Completed}}\n- never: {running: {a: 2}}"
    )
    assert said == (
        "running a: 2, not 3; phase of job a: Running, not Completed; never {'running': {'a': 2}}: it held at 00:00:05"
    )


def test_objects_are_made_a_second_apart_and_a_cycle_takes_one():
    steps = f"- {SUBMIT}\n- schedule: {{cycles: 3}}\n- submit_pod: {{name: p, containers: [{{cpu: 1}}]}}\n- schedule: one-cycle"
    (case,) = load(text(steps, "- running: {a: 2, p: 1}"))
    from portal.scenario.player import _Run

    run = _Run(case, float("inf"), 60, seed=0)
    assert run.play() == []
    assert run.world.time_of_day() == "00:00:08"  # two nodes, a job, three cycles, a pod, a cycle
    run.close()


def test_a_check_fails_where_it_stands():
    said = seen(f"- {SUBMIT}\n- check: {{running: {{a: 2}}}}\n- schedule: until-quiet", "- running: {a: 2}")
    assert said == "line 5, check: running a: 0, not 2"


def test_refusals_do_not_stop_a_case_and_are_remembered():
    steps = """
    - submit: {job: a, queue: nowhere, tasks: {w: {replicas: 1}}}
    - create_queue: {name: q, capability: {cpu: 2}, deserved: {cpu: 3}}
    - create_queue: {name: r, weight: 7}
    - queue_update: {queue: r, weight: 9}
    - delete: {queue: r}
    """
    expect = """
    - {refused: [a, q], not_created: [a], message_names: [capability]}
    - accepted: [r]
    - gone: {queues: [r]}
    """
    assert seen(textwrap.dedent(steps), textwrap.dedent(expect)) == ""
    assert "a: was refused: Job 'a' is invalid" in seen(textwrap.dedent(steps), "- accepted: [a]")


def test_what_is_not_built_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(CHECKS, "flow_phase")
    assert seen("- settle: true", "- flow_phase: {f: Failed}") == "not supported yet: flow_phase"


def test_a_setup_that_is_refused_fails_the_case():
    setup = "{queues: [{name: q, parent: nowhere}]}"
    assert "the setup is refused" in seen("- settle: true", "- running: {a: 0}", setup)


def test_any_number_of_mappings_may_be_asked():
    expect = "- {}_of: [{{running: {{a: 2}}}}, {{running: {{a: {}}}}}]"
    steps = f"- {SUBMIT}\n- schedule: until-quiet"
    assert seen(steps, expect.format("one", 3)) == ""
    assert seen(steps, expect.format("exactly_one", 3)) == ""
    assert seen(steps, expect.format("exactly_one", 2)).startswith("2 of 2 hold")
    assert seen(steps, "- one_of: [{running: {a: 1}}, {running: {a: 3}}]").startswith("none of 2 holds")


def test_a_lost_node_takes_its_pods_along_and_they_are_made_again():
    steps = f"""
    - {SUBMIT}
    - schedule: until-quiet
    - lose_node_of: {{pod: a-w-0}}
    - schedule: until-quiet
    """
    setup = "{nodes: [{name: n1, cpu: 1, memory: 8Gi}, {name: n2, cpu: 1, memory: 8Gi}]}"
    expect = "- {pending: [a-w-0], running: {a: 1}, pod_not_replaced: [a-w-1], pods_created: {a: 3}}"
    assert seen(textwrap.dedent(steps), expect, setup) == ""


def test_a_node_grows_and_its_labels_change():
    steps = """
    - submit: {job: a, tasks: {w: {replicas: 1, cpu: 6, nodeSelector: {disk: fast}}}}
    - schedule: until-quiet
    - check: {running: {a: 0}}
    - node_update: {node: n2, cpu: 8, labels: {disk: fast}, extra: {example.com/fpga: 1}}
    - schedule: until-quiet
    """
    assert seen(textwrap.dedent(steps), "- {on_node: {a-w-0: n2}, nodes_used: {a: [n2]}}") == ""


def test_a_job_is_suspended_by_a_command_and_a_new_controller_goes_on():
    steps = f"""
    - {SUBMIT}
    - schedule: until-quiet
    - job_action: {{job: a, action: abort}}
    - settle: true
    - check: {{job_phase: {{a: Aborted}}, running: {{a: 0}}}}
    - restart_controller: true
    - job_action: {{job: a, action: resume}}
    - schedule: until-quiet
    """
    assert seen(textwrap.dedent(steps), "- {running: {a: 2}, pod_replaced: [a-w-0], accepted: [a]}") == ""


def test_the_clock_stops_wherever_a_controller_has_something_to_do():
    steps = f"- {SUBMIT}\n- schedule: until-quiet\n- clock: {{to: '09:30'}}\n- clock: {{to: '09:00'}}"
    (case,) = load(text(steps, "- running: {a: 2}"))
    from portal.scenario.player import _Run

    run = _Run(case, float("inf"), 60, seed=0)
    assert run.play() == []
    assert run.world.clock.now() % 86400 == 9 * 3600
    assert run.world.time_of_day() == "09:00:00"
    run.close()


def test_repeating_plays_from_the_setup_and_wants_the_same_end():
    steps = f"- {SUBMIT}\n- schedule: until-quiet\n- repeat: {{times: 3, fresh: true}}"
    assert seen(steps, "- {running: {a: 2}, pods_created: {a: 2}}") == ""
    assert seen(steps, "- running: {a: 1}") == "run 1: running a: 2, not 1"


def test_steps_are_repeated():
    steps = f"""
    - {SUBMIT}
    - repeat_steps:
        times: 2
        steps:
        - schedule: until-quiet
        - delete: {{pod: a-w-0}}
    """
    assert seen(textwrap.dedent(steps), "- pods_created: {a: 3}") == ""


def test_reasons_are_read_in_english_as_whole_words():
    steps = "- submit: {job: a, min: 3, tasks: {w: {replicas: 3, cpu: 2500m}}}\n- schedule: until-quiet"
    assert seen(steps, "- reason: {a: {numbers: [3, [9, 2]], words: [PODS], says: two of three fit}}") == ""
    assert "does not say 33: " in seen(steps, "- reason: {a: {numbers: [33]}}")


def test_a_case_that_takes_too_long_has_failed():
    (case,) = load(text("- schedule: {cycles: 100}", "- running: {a: 0}"))
    assert play(case, seconds=0).seen == ["line 4, schedule: took more than 0 s"]


def test_a_restless_cluster_is_told(monkeypatch):
    monkeypatch.setattr("portal.scenario.world.MOST_CYCLES", 1)
    assert "not quiet after 1 cycles" in seen(f"- {SUBMIT}\n- schedule: until-quiet", "- running: {a: 2}")


def test_the_documentations_example_passes():
    page = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text()
    example = page[page.index("    - id:") : page.index("\n\nA line is printed")]
    assert [play(case).seen for case in load(textwrap.dedent(example))] == [[]]


def test_the_documentation_has_every_word():
    page = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text()
    assert [word for word in {**words.STEPS, **words.EXPECT} if f"`{word}`" not in page] == []


# --- pages --------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_pages_are_opened_filtered_and_counted():
    setup = (
        "{nodes: [{name: n1, cpu: 4, memory: 8Gi}], queues: [{name: ml}], page_size: 5, objects: ["
        "{kind: Job, count: 7, namespace: team, queue: ml}, {kind: Job, count: 3, phase: Completed}]}"
    )
    steps = (
        "- open_page: [queues, jobs]\n- check: {total_shown: 10, rows_after_filter: 5, page_is: 1}\n- filter: {namespace: team}"
    )
    expect = """
    - {rows_after_filter: 5, total_shown: 7, page_is: 1}
    - filter_choices_include: {namespace: [team, default], queue: [ml], phase: [Running]}
    - page_shows: {jobs: [job-6, team], queues: [ml], queue/ml: [ml]}
    """
    assert seen(steps, textwrap.dedent(expect), setup) == ""


@pytest.mark.django_db
def test_what_a_page_does_not_show_is_named():
    steps = f"- {SUBMIT}\n- schedule: until-quiet\n- open_page: job/a"
    assert seen(steps, "- page_shows: {job/a: [Running, nonsense]}") == "page job/a does not show nonsense"
    assert "the portal does not know it" in seen("- open_page: job/b", "- running: {b: 0}")


@pytest.mark.django_db
def test_a_queue_is_edited_through_its_form():
    setup = "{nodes: [{name: n1, cpu: 4, memory: 8Gi}], queues: [{name: q, weight: 3, capability: {cpu: 2}}]}"
    steps = "- edit_queue: {queue: q, weight: 5, capability: {cpu: 3, example.com/fpga: 1}}"
    assert seen(steps, "- {accepted: [q], queue_weight: {q: 5}, queue_limit: {q: {cpu: 3, example.com/fpga: 1}}}", setup) == ""


@pytest.mark.django_db
def test_an_edit_that_the_form_refuses_is_no_edit():
    setup = "{nodes: [{name: n1, cpu: 4, memory: 8Gi}], queues: [{name: q, weight: 3}]}"
    steps = "- edit_queue: {queue: q, weight: 70000}"
    assert seen(steps, "- {refused: [q], queue_weight: {q: 3}, message_names: ['65535']}", setup) == ""


def test_what_is_hidden_is_not_read():
    page = Page(
        "<head><title>t</title></head><p hidden>no <b>no</b></p><script>no</script><p>yes,\n <b>it is</b></p>"
        "<input name=a value=1><input type=checkbox name=b value=2><select name=c><option value=3 selected>three</select>"
        "<table><thead><tr></tr></thead><tbody><tr><td>1</td></tr></tbody></table>"
    )
    assert page.text == "yes, it is three 1"
    assert page.form() == {"a": "1", "c": "3"}
    assert (page.values("b"), page.rows) == ({"2"}, 1)
