"""Jobs from the terminal, against a running Basalt: their life, and submit, explain, watch, wait, logs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.jobs import FLOW, MORE_THAN_THERE_IS, manifest, phase, submitted
from tests.cli.program import basalt
from tests.e2e.server import Server, wait_for

pytestmark = pytest.mark.usefixtures("signed_in")

# --- the life of a job, by Volcano's verbs ---


def test_a_job_of_options_runs_is_listed_viewed_and_deleted():
    asked = ("-N", "opts", "-r", "3", "-m", "2", "-i", "alpine", *MORE_THAN_THERE_IS)
    assert basalt("job", "run", *asked).out == "run job opts successfully\n"
    phase("opts", "Pending")
    row = basalt("job", "list", "--selector", "opts").lines
    titles = "Name Creation Phase JobType Replicas Min Pending Running Succeeded Failed Unknown RetryCount"
    assert row[0].split() == titles.split()
    assert row[1].split()[2:6] == ["Pending", "Batch", "3", "2"]
    seen = basalt("job", "view", "-N", "opts").lines
    assert seen[0] == "Name:       \topts"
    assert "              Cpu:   \t900" in seen
    assert "    Phase:\tPending" in seen
    assert "          Image:\talpine" in seen
    assert basalt("job", "delete", "opts").out == "delete job opts successfully\n"
    wait_for(lambda: basalt("job", "list", "--selector", "opts").out == "No resources found\n")


def test_a_job_runs_from_a_file_in_the_namespace_that_is_asked_for(home):
    Path("one.yaml").write_text(manifest("filed"))
    Path("one.txt").write_text(manifest("filed"))
    assert basalt("job", "run", "-f", "one.txt", code=6).err.startswith("Error: only support yaml file\n")
    assert basalt("job", "run", "-f", "one.yaml", "-n", "lab").out == "run job filed successfully\n"
    assert basalt("job", "list", "-n", "lab", "-o", "name").out == "job/filed\n"
    assert re.match(r"Namespace +Name +Creation", basalt("job", "list", "-A").lines[0])
    Path("two.yaml").write_text(manifest("filed").replace("name: filed", "name: filed\n  namespace: other"))
    assert "does not match" in basalt("job", "run", "-f", "two.yaml", "-n", "lab", code=6).err


def test_suspend_and_resume_say_nothing_and_do_it():
    submitted("pausing", duration="10h")
    phase("pausing", "Running")
    assert basalt("job", "suspend", "-N", "pausing").out == ""
    phase("pausing", "Aborted")
    assert basalt("job", "resume", "pausing").out == ""
    phase("pausing", "Running")
    assert basalt("job", "restart", "pausing").out == ""
    assert basalt("wait", "pausing", "--for=phase=Running", "--timeout", "30").code == 0
    assert basalt("job", "complete", "pausing").out == ""
    phase("pausing", "Completed")
    assert "Completed" in basalt("job", "terminate", "pausing", code=7).err


def test_several_names_of_which_one_is_none_are_done_as_far_as_can_be():
    submitted("both", duration="10h")
    said = basalt("job", "delete", "nobody", "both", code=10)
    assert said.out == "delete job both successfully\n"
    assert said.err == "Error: 1 of 2 were refused: nobody: There is no Job default/nobody.\n"


def test_lists_are_narrowed_by_queue_label_scheduler_and_name():
    submitted("gold-one", team="gold", queue="teaching")
    submitted("gold-two", team="gold")
    submitted("tin-one", team="tin")

    def listed(*args: str) -> list[str]:
        return [line.split("/")[1] for line in basalt("job", "list", "-o", "name", *args).lines]

    assert listed("-l", "team=gold") == ["gold-one", "gold-two"]
    assert listed("-l", "team in (gold,tin)", "--selector", "one") == ["gold-one", "tin-one"]
    assert listed("-q", "teaching", "-l", "team=gold") == ["gold-one"]
    assert basalt("job", "list", "-S", "nobodys").out == "No resources found\n"
    assert "no label key" in basalt("job", "list", "-l", "-x=1", code=6).err


def test_output_as_json_yaml_names_wide_and_without_headers():
    submitted("forms")
    one = json.loads(basalt("job", "view", "forms", "-o", "json").out)
    assert (one["kind"], one["metadata"]["name"]) == ("Job", "forms")
    many = yaml.safe_load(basalt("job", "list", "--selector", "forms", "-o", "yaml").out)
    assert (many["kind"], [item["metadata"]["name"] for item in many["items"]]) == ("List", ["forms"])
    assert json.loads(basalt("queue", "list", "-o", "json").out)["items"][0]["kind"] == "Queue"
    assert json.loads(basalt("pod", "list", "-j", "forms", "-o", "json").out)["items"][0]["kind"] == "Pod"
    wide = basalt("job", "list", "--selector", "forms", "-o", "wide").lines
    assert wide[0].split()[-5:] == ["Queue", "Owner", "GPUs", "Age", "Why"]
    assert wide[1].split()[12:14] == ["default", "admin"]
    assert basalt("job", "list", "--selector", "forms", "--no-headers").lines[0].startswith("forms ")


# --- submit, explain, watch, wait, logs ---


def test_a_dry_run_checks_and_submits_nothing():
    Path("dry.yaml").write_text(manifest("dry"))
    assert basalt("submit", "dry.yaml", "--dry-run").lines[0] == "job/dry is valid (dry run: nothing was submitted)"
    assert yaml.safe_load(basalt("submit", "dry.yaml", "--dry-run", "-o", "yaml").out)["spec"]["schedulerName"] == "volcano"
    assert basalt("job", "view", "dry", code=5).err == "Error: There is no Job default/dry.\n"


def test_submit_from_standard_input_with_edits():
    said = basalt(
        "submit", "-", "--set", "metadata.name=set", "--set", "spec.tasks[0].replicas=3", "-o", "name", stdin=manifest("unset")
    )
    assert said.out == "job/set\n"
    assert json.loads(basalt("job", "view", "set", "-o", "json").out)["spec"]["tasks"][0]["replicas"] == 3


def test_every_fault_comes_with_its_line_and_pointer():
    text = manifest("faulty").replace("minAvailable: 2", "minAvailable: 9").replace('cpu: "1"', 'cpu: "1x"')
    Path("faulty.yaml").write_text(f"# a comment\n---\n{text}")
    said = basalt("submit", "faulty.yaml", code=6)
    assert said.out == ""
    head, first, second = said.err.splitlines()
    assert head == "Error: faulty.yaml was refused: 2 faults:"
    assert first.startswith("  line 9, /spec/minAvailable: ")
    assert second.startswith("  line 23, /spec/tasks/0/template/spec/containers/0/resources/requests/cpu: '1x'")


def test_a_name_that_is_taken_is_a_conflict():
    submitted("taken")
    assert basalt("submit", "taken.yaml", code=7).err == "Error: taken.yaml was refused: Job 'taken' already exists\n"


def test_several_documents_are_submitted_all_or_none():
    Path("flow.yaml").write_text(FLOW.format(name="pair"))
    assert basalt("submit", "flow.yaml").lines == ["jobtemplate/pair-step submitted", "jobflow/pair submitted"]
    again = basalt("submit", "flow.yaml", code=7)
    assert "these exist already: JobTemplate default/pair-step, JobFlow default/pair" in again.err
    assert "Nothing was submitted." in again.err


def test_apply_creates_changes_and_leaves_alone():
    Path("manifests").mkdir()
    Path("manifests/a.yaml").write_text(manifest("applied"))
    Path("manifests/b.yaml").write_text(FLOW.format(name="applied-flow"))
    assert basalt("apply", "-f", "manifests", "--dry-run").lines[0] == "job/applied created (dry run)"
    assert basalt("apply", "-f", "manifests").lines == [
        "job/applied created",
        "jobtemplate/applied-flow-step created",
        "jobflow/applied-flow created",
    ]
    assert basalt("apply", "-f", "manifests/b.yaml").lines == [
        "jobtemplate/applied-flow-step unchanged",
        "jobflow/applied-flow unchanged",
    ]
    Path("manifests/c.yaml").write_text(manifest("bad name"))
    some = basalt("apply", "-f", "manifests", code=10)
    assert "manifests/c.yaml was refused" in some.err
    assert "1 of 3 files were refused" in some.err
    assert len(some.lines) == 3


def test_a_job_that_cannot_start_is_explained():
    submitted("greedy", replicas=2, gpus=500, team="x")
    wait_for(lambda: json.loads(basalt("job", "list", "--selector", "greedy", "-o", "json").out)["items"])
    said = wait_for(lambda: (found := basalt("explain", "greedy", "--wait", "0")).out.count("\n") > 2 and found)
    assert said.lines[0].startswith("default/greedy in queue default: Pending for ")
    assert any(line.startswith("Why        ") and "500" in line for line in said.lines)
    assert json.loads(basalt("explain", "greedy", "--wait", "0", "-o", "json").out)["waits"] is True
    basalt("job", "delete", "greedy")


def test_a_job_that_waits_for_nothing_is_explained_too():
    submitted("easy", duration="10h")
    phase("easy", "Running")
    assert basalt("explain", "easy").lines[0].startswith("default/easy in queue default: Running for ")


def test_watch_tells_a_jobs_steps_until_it_has_ended():
    submitted("watched", duration="10m")
    said = basalt("watch", "watched").lines
    assert said[-1].startswith(("job/watched Completed", "pod/"))
    assert "job/watched Completed" in said
    assert any(re.fullmatch(r"pod/watched-worker-0 Running on \S+", line) for line in said)


def test_watch_lists_jobs_and_then_each_change(signed_in: Server):
    command = [sys.executable, "-c", "from basalt.main import basalt; basalt()", "watch", "-A"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().split()[:2] == ["Namespace", "Name"]
        submitted("appearing")
        wait_for(lambda: "appearing" in watching.stdout.readline(), pause=0)
        watching.terminate()


def test_wait_until_a_job_is_where_it_should_be():
    submitted("waited", duration="100s")
    assert basalt("wait", "waited", "--for=condition=Running", "--timeout", "30s").out == "job/waited has been Running\n"
    assert basalt("wait", "waited", "--timeout", "1m").out == "job/waited is Completed\n"
    ended = basalt("wait", "waited", "--for=phase=Running", code=11)
    assert ended.err == "Error: Job default/waited ended as Completed, and not as Running.\n"
    basalt("job", "delete", "waited")
    assert basalt("wait", "waited", "--for=delete", "--timeout", "30s").out == "job/waited is gone\n"
    assert basalt("wait", "waited", code=11).err == "Error: Job default/waited was deleted, and was not Completed.\n"
    assert "no phase" in basalt("wait", "waited", "--for=phase=Done", code=6).err


def test_wait_gives_up_at_the_end_of_its_time():
    submitted("slow", duration="10h")
    said = basalt("wait", "slow", "--timeout", "1s", code=9)
    assert re.fullmatch(r"Error: Job default/slow is \w+, and not Completed, at the end of the time.\n", said.err)


def test_logs_of_all_pods_of_one_and_followed_to_the_end():
    submitted("talking", duration="100s")
    followed = basalt("logs", "talking", "-f").lines
    assert {line.split("]")[0] for line in followed} == {"[talking-worker-0 main", "[talking-worker-1 main"}
    assert followed == basalt("logs", "talking").lines
    one = basalt("logs", "talking", "--pod", "talking-worker-1", "--tail", "1", "--timestamps").lines
    assert len(one) == 1
    assert re.match(r"\d{4}-\d\d-\d\dT\S+Z main: ended", one[0])
    assert basalt("logs", "talking", "-t", "nobody", code=5).err == (
        "Error: Job default/talking has no task 'nobody'; it has worker.\n"
    )
    assert "no duration" in basalt("logs", "talking", "--since", "soon", code=6).err


def test_a_blueprint_is_filled_out_from_the_terminal(signed_in: Server):
    source = (Path(__file__).parents[2] / "docs" / "blueprints.md").read_text().split("```yaml\n")[1].split("```")[0]
    source = source.replace("research", "default")
    answer = signed_in.client().post("blueprints", content=source, headers={"Content-Type": "application/yaml"})
    assert answer.status_code == 201, answer.text
    assert (
        basalt("submit", "--blueprint", "sweep", "-p", "image=busybox", "-p", "pods=2", "-N", "swept").out
        == "job/swept submitted\n"
    )
    made = json.loads(basalt("job", "view", "swept", "-o", "json").out)
    assert made["spec"]["tasks"][0]["replicas"] == 2
    tried = basalt("submit", "-b", "sweep@1", "-p", "image=busybox", "--dry-run")
    assert "is valid (dry run" in tried.out
    refused = basalt("submit", "-b", "sweep", "-p", "image=busybox", "-p", "pods=65", code=6)
    assert "must be 64 or less, not 65" in refused.err
    assert "name a file to submit" in basalt("submit", code=2).err
