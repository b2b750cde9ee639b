"""The other commands against a running Basalt: queues, flows, pods, top, contexts, completion, and Volcano's short forms."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.jobs import FLOW, MORE_THAN_THERE_IS, manifest, phase, submitted
from tests.cli.program import Result, basalt, call
from tests.e2e.server import Server, wait_for

pytestmark = pytest.mark.usefixtures("signed_in")

# --- queues, flows, templates, pods ---


def test_a_queue_from_create_to_delete():
    assert basalt("queue", "create", "-n", "lab", "-w", "3").out == ""
    head, row = basalt("queue", "get", "-n", "lab").lines
    assert head == "Name                     Weight  State   Parent  Inqueue Pending Running Unknown Completed"
    assert row == "lab                      3       Open    root    0       0       0       0       0        "[: len(row)]
    assert basalt("queue", "operate", "-n", "lab", "-a", "update", "-w", "5").out == ""
    assert basalt("queue", "update", "lab", "--capability", "cpu=8,memory=1Gi", "--parent", "research").out == ""
    assert basalt("queue", "update", "lab", "--capability", "memory=2Gi").out == ""
    spec = json.loads(basalt("queue", "get", "lab", "-o", "json").out)["spec"]
    assert (spec["weight"], spec["parent"], spec["capability"]) == (5, "research", {"memory": "2Gi"})
    assert basalt("queue", "operate", "-n", "lab", "-a", "close").out == ""
    wait_for(lambda: " Closed " in basalt("queue", "get", "lab").out)
    assert basalt("queue", "operate", "-n", "lab", "-a", "open").out == ""
    wait_for(lambda: " Open " in basalt("queue", "get", "lab").out)
    assert "lab" in basalt("queue", "list", "-o", "name").out
    assert basalt("queue", "delete", "-n", "lab").out == ""
    assert basalt("queue", "get", "lab", code=5).err == "Error: lab is gone; only its history is left.\n"
    assert basalt("queue", "get", "nobody", code=5).err == "Error: There is no Queue nobody.\n"


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("operate", "-n", "default"), 2, "action can not be null"),
        (("operate", "-n", "default", "-a", "burn"), 6, "action burn invalid, valid actions are open, close and update"),
        (("operate", "-a", "open"), 2, "queue name must be specified"),
        (("operate", "-n", "default", "-a", "update"), 6, "when update queue default, weight must be specified"),
        (("get",), 2, "name is mandatory to get the particular queue details"),
        (("update", "default"), 2, "there is nothing to change"),
        (("update", "default", "--capability", "cpu"), 6, "invalid argument syntax cpu, expected <resource>=<value>"),
        (("create", "-n", "Not_One"), 6, "Not_One"),
    ],
)
def test_what_a_queue_command_cannot_do_without(args, code, text):
    assert text in basalt("queue", *args, code=code).err


def test_flows_and_templates_have_volcanos_verbs():
    Path("template.yaml").write_text(FLOW.format(name="verbs").split("---\n")[0])
    Path("flow.yaml").write_text(FLOW.format(name="verbs").split("---\n")[1])
    assert basalt("jobtemplate", "create", "-f", "template.yaml").out == "Created JobTemplate: default/verbs-step\n"
    assert basalt("jobflow", "create", "-f", "flow.yaml").out == "Created JobFlow: default/verbs\n"
    assert basalt("jobtemplate", "get", "-N", "verbs-step").lines[0].split() == ["Name", "Namespace"]
    assert basalt("jobflow", "get", "-N", "verbs").lines[0].split() == ["Name", "Namespace", "Phase", "Age"]
    assert "verbs-step" in basalt("jobtemplate", "list").out
    assert re.search(r"^verbs +default +\w+ +\w+", basalt("jobflow", "list", "-A").out, re.MULTILINE)
    assert yaml.safe_load(basalt("jobflow", "describe", "-N", "verbs").out)["kind"] == "JobFlow"
    assert json.loads(basalt("jobtemplate", "describe", "verbs-step", "-o", "json").out)["kind"] == "JobTemplate"
    assert basalt("jobflow", "describe", "-o", "toml", code=6).err == "Error: Unsupported format: toml\n"
    wait_for(lambda: " Succeed " in basalt("jobflow", "get", "verbs").out)
    assert basalt("jobflow", "delete", "-f", "flow.yaml").out == "Deleted JobFlow: default/verbs\n"
    assert basalt("jobtemplate", "delete", "-N", "verbs-step").out == "Deleted JobTemplate: default/verbs-step\n"


def test_a_flow_that_is_refused_does_not_stop_the_next():
    Path("flows.yaml").write_text(
        FLOW.format(name="first").replace("flow: []", "").split("---\n")[0].replace("minAvailable: 1", "minAvailable: 7")
        + "---\n"
        + FLOW.format(name="second").split("---\n")[0]
    )
    said = basalt("jobtemplate", "create", "-f", "flows.yaml", code=10)
    assert said.lines[0].startswith("Failed to create JobTemplate: ")
    assert "line 5" in said.lines[0]
    assert said.lines[1] == "Created JobTemplate: default/second-step"
    assert call("jobtemplate", "create", "-f", "flows.yaml", prog="vcctl").code == 0
    basalt("jobtemplate", "delete", "second-step")


def test_pods_of_jobs_of_a_job_and_of_a_queue():
    submitted("podded", duration="10h", queue="teaching")
    phase("podded", "Running")
    head, *rows = basalt("pod", "list", "-j", "podded").lines
    assert head.split() == ["Name", "Ready", "Status", "Restart", "Age"]
    assert [row.split()[:4] for row in rows] == [[f"podded-worker-{index}", "1/1", "Running", "0"] for index in (0, 1)]
    assert len(basalt("pod", "list", "-q", "teaching", "-o", "name").lines) >= 2
    assert basalt("pod", "list", "-j", "podded", "-q", "prod", code=6).err == (
        "Error: the input vcjob podded does not match the queue prod\n"
    )
    assert basalt("pod", "list", "-A").lines[0].split()[0] == "Namespace"
    assert basalt("pod", "list", "-j", "nobody").out == "No resources found\n"
    basalt("job", "delete", "podded")


# --- top, versions, contexts ---


def test_top_queues_nodes_and_the_map_of_gpus():
    submitted("mapped", duration="10h", replicas=1, gpus=2)
    phase("mapped", "Running")
    row = re.compile(r"^ {2}default +Open +\d+% +[█░]{10} +2", re.MULTILINE)
    wait_for(lambda: row.search(basalt("top", "queues").out), what="what the queue has, which follows the job's phase")
    assert {row["name"] for row in json.loads(basalt("top", "queues", "-o", "json").out)} >= {"default", "root"}
    nodes = basalt("top", "nodes").lines
    assert nodes[0].split() == ["Node", "Status", "CPUs", "CPU%", "Memory", "Memory%", "GPUs", "Model", "Pods"]
    assert any(line.split()[6:7] == ["2/8"] or line.split()[6:7] == ["2/4"] for line in nodes)
    rows = json.loads(basalt("top", "gpus", "-o", "json").out)
    assert sum(cell["job"] == "default/mapped" for row in rows for cell in row["gpus"]) == 2
    drawn = basalt("top", "gpus").out
    assert re.match(r"\d+ GPUs on \d+ machines: ", drawn)
    assert "■■" in drawn
    assert re.search(r"^■ +default/mapped +2 GPUs", drawn, re.MULTILINE)
    basalt("job", "delete", "mapped")


def test_version_names_both_sides(signed_in: Server):
    said = basalt("version").out
    assert said.startswith("API Version: v1alpha1\nVersion: 0.1.0\n")
    assert f"Server: {signed_in.url} version 0.1.0 (embedded cluster), user admin\n" in said
    assert "Server" not in basalt("version", "--client").out


def test_contexts_are_listed_used_set_and_deleted(signed_in: Server, token: str):
    name = signed_in.url.removeprefix("http://")
    assert basalt("context", "list").lines[1].split()[:4] == ["*", name, signed_in.url, "admin"]
    assert basalt("context", "set", "lab", "--server", signed_in.url, "-n", "lab").out == "Context 'lab' is set.\n"
    assert basalt("context", "use", "lab").out == "Switched to context 'lab'.\n"
    assert "not signed in" in basalt("job", "list", code=3).err
    basalt("login", "--name", "lab", "--token-stdin", stdin=f"{token}\n")
    Path("spaced.yaml").write_text(manifest("spaced"))
    basalt("submit", "spaced.yaml")
    assert basalt("job", "list", "--context", name, "-n", "lab", "--selector", "spaced", "-o", "name").out == "job/spaced\n"
    assert "There is no context 'x'" in basalt("context", "use", "x", code=6).err
    assert basalt("context", "delete", "lab").out == "Context 'lab' is deleted.\n"
    assert "No server is known yet" in basalt("job", "list", code=6).err


def test_sign_in_with_a_password_and_out_again(signed_in: Server):
    wrong = basalt("login", signed_in.url, "-u", "admin", "--password-stdin", stdin="nonsense\n", code=3)
    assert wrong.err.startswith(f"Error: Wrong name or password for {signed_in.url}.\n")
    said = basalt("login", signed_in.url, "-u", "admin", "--password-stdin", "--name", "mine", stdin=f"{signed_in.password}\n")
    assert said.out == f"Signed in at {signed_in.url} as admin: context 'mine'.\n"
    kept = Path("config/basalt/config.yaml")
    assert kept.stat().st_mode & 0o777 == 0o600
    token = yaml.safe_load(kept.read_text())["contexts"]["mine"]["token"]
    assert basalt("logout").out == f"Signed out at {signed_in.url}.\n"
    assert "token" not in yaml.safe_load(kept.read_text())["contexts"]["mine"]
    assert "Sign in" in basalt("job", "list", code=3).err
    assert "does not take this token" in basalt("login", signed_in.url, "--token-stdin", stdin=f"{token}\n", code=3).err


def test_a_server_and_token_from_the_environment_or_a_kubeconfig(signed_in: Server, token: str, monkeypatch, home: Path):
    (home / "config/basalt/config.yaml").unlink()
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": f"{signed_in.url}/kubernetes/with-token/{token}"}}],
        "users": [{"name": "u", "user": {}}],
    }
    Path("kubeconfig").write_text(yaml.safe_dump(config))
    assert basalt("queue", "get", "-n", "default", "-k", "kubeconfig", "-o", "name").out == "queue/default\n"
    monkeypatch.setenv("BASALT_SERVER", signed_in.url)
    monkeypatch.setenv("BASALT_TOKEN", token)
    assert basalt("queue", "get", "-n", "default", "-o", "name").out == "queue/default\n"
    config["clusters"][0]["cluster"]["server"] = "https://10.0.0.1:6443"
    Path("kubeconfig").write_text(yaml.safe_dump(config))
    assert "is an API server and no Basalt" in basalt("job", "list", "-k", "kubeconfig", code=6).err
    assert "There is no kubeconfig" in basalt("job", "list", "-k", "nowhere", code=6).err


# --- completion ---


def completed(*words: str, prog: str = "basalt") -> list[str]:
    """What a bash would be offered for the last word."""
    variable = f"_{prog.upper()}_COMPLETE"
    script = f"from basalt.main import {prog}; {prog}()"
    line = subprocess.run(
        [sys.executable, "-c", script],
        env={**_environment(), variable: "bash_complete", "COMP_WORDS": " ".join([prog, *words]), "COMP_CWORD": str(len(words))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not line.stderr, line.stderr
    return [entry.split(",", 1)[1] for entry in line.stdout.split()]


def _environment() -> dict[str, str]:
    import os

    return dict(os.environ)


def test_shells_complete_commands_and_names():
    submitted("completing")
    assert completed("jo") == ["job", "jobflow", "jobtemplate"]
    assert completed("explain", "compl") == ["completing"]
    assert completed("job", "view", "-N", "compl") == ["completing"]
    assert completed("job", "list", "-q", "tea") == ["teaching"]
    assert completed("-n", "compl", prog="vjobs") == ["completing"]
    assert completed("job", "list", "-s", "http://127.0.0.1:1", "-q", "") == []
    for shell in ("bash", "zsh", "fish"):
        assert "_BASALT_COMPLETE" in basalt("completion", shell).out


# --- the other names of the program ---


def said(prog: str, *args: str) -> Result:
    return call(*args, prog=prog)


def test_the_short_forms_swap_n_and_N(monkeypatch):
    monkeypatch.setenv("VOLCANO_DEFAULT_IMAGE", "alpine")
    monkeypatch.setenv("VOLCANO_DEFAULT_JOB_NAMESPACE", "short")
    assert said("vsub", "-n", "tiny", "-c", "sleep 'a b'", *MORE_THAN_THERE_IS).out == "run job tiny successfully\n"
    spec = json.loads(said("vjobs", "-n", "tiny", "-N", "short", "-o", "json").out)["spec"]
    container = spec["tasks"][0]["template"]["spec"]["containers"][0]
    assert (container["image"], container["command"]) == ("alpine", ["sleep", "a b"])
    wait_for(lambda: " Pending " in said("vjobs", "-N", "short").out)
    assert said("vsuspend", "-n", "tiny", "-N", "short") == Result(0, "", "")
    wait_for(lambda: " Aborted " in said("vjobs", "-N", "short").out)
    assert said("vresume", "-n", "tiny", "-N", "short") == Result(0, "", "")
    view = said("vjobs", "-n", "tiny", "-N", "short").lines
    assert view[0] == "Name:       \ttiny"
    assert "  Conditions:" not in view
    assert said("vcancel", "-n", "tiny", "-N", "short").out == "cancel job tiny successfully\n"
    head = said("vqueues").lines[0]
    assert head == "Name                     Weight  State   Inqueue Pending Running Unknown "
    assert said("vqueues", "-n", "default").lines[1].split()[:3] == ["default", "1", "Open"]


@pytest.mark.parametrize(
    ("prog", "args", "text"),
    [
        (
            "vcctl",
            ("job", "view"),
            "Failed to view job: job name (specified by --name or -N) is mandatory to view a particular job\n",
        ),
        ("vcctl", ("job", "run"), "Failed to run job: job name cannot be left blank\n"),
        ("vcctl", ("job", "delete", "-N", "nobody"), "Failed to delete job: There is no Job default/nobody.\n"),
        ("vcctl", ("job", "suspend"), "Failed to suspend job: job name is mandatory to suspend a particular job\n"),
        ("vcctl", ("queue", "operate", "-n", "default"), "Failed to operate queue: action can not be null\n"),
        ("vcancel", (), "Failed to: job name is mandatory to cancel a particular job\n"),
    ],
)
def test_under_volcanos_names_errors_are_told_as_volcano_tells_them(prog, args, text):
    assert said(prog, *args) == Result(255, text, "")
