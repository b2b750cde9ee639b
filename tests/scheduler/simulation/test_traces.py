"""Traces become jobs, and whatever is wrong with one is told with file, line, column and what would be right."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from scheduler.simulation.traces import Choice, read
from scheduler.simulation.traces import nodes as node_lists
from scheduler.simulation.workload import GPU, GPU_SHARE, WorkloadError, over_nodes

PHILLY = ["vc,job,arrival_s,gpus,duration_s,job_type,total_steps", "ab12,0,5,16,100,LM,1"]


def faults(lines: list[str], choice: Choice | None = None) -> list[str]:
    with pytest.raises(WorkloadError) as caught:
        read("t.csv", lines, choice or Choice())
    return caught.value.faults


def test_a_philly_job_is_a_gang_of_pods_as_large_as_nodes() -> None:
    (job,) = read("t.csv", PHILLY, Choice(part="ab12")).jobs
    assert (job.name, job.arrival, job.duration, job.pods, job.least, job.gpus) == ("job-000000", 5.0, 100.0, 2, 2, 16)
    assert job.roles[0].requests[GPU] == "8"
    assert job.queue == "default"


def test_philly_without_a_part_has_a_queue_for_each_virtual_cluster() -> None:
    (job,) = read("t.csv", PHILLY, Choice()).jobs
    assert (job.name, job.queue) == ("ab12-000000", "vc-ab12")


@pytest.mark.parametrize(
    ("gpus", "pods"), [(1, (1, 1)), (8, (1, 8)), (12, (2, 6)), (20, (4, 5)), (7, (1, 7)), (24, (3, 8)), (13, (13, 1))]
)
def test_gpus_over_nodes_of_eight(gpus: int, pods: tuple[int, int]) -> None:
    assert over_nodes(gpus, 8) == pods


def test_a_tiresias_row() -> None:
    lines = ["job_id,num_gpu,submit_time,iterations,model_name,duration,interval", "3,1,79,513,vgg16,121,20"]
    (job,) = read("t.csv", lines, Choice()).jobs
    assert (job.name, job.arrival, job.duration, job.gpus, job.kind) == ("job-000003", 79.0, 121.0, 1, "vgg16")


def test_a_pollux_row_gets_a_run_time_from_the_range_of_its_application_the_same_every_time() -> None:
    lines = ["set,workload,name,time,application,num_replicas,batch_size", "w_a,1,bert-0,107,bert,4,12"]
    (job,) = read("t.csv", lines, Choice(seed=1)).jobs
    assert 3600 <= job.duration * job.gpus <= 36_000
    assert read("t.csv", lines, Choice(seed=1)).jobs[0].duration == job.duration
    assert read("t.csv", lines, Choice(seed=2)).jobs[0].duration != job.duration
    assert read("t.csv", lines, Choice()).parts == {"w_a/1": 1}


OPENB = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"


def test_an_openb_row_is_a_pod_with_a_share_of_a_gpu_and_the_models_it_takes() -> None:
    lines = [OPENB, "p1,6000,12288,1,460,V100M16|T4,LS,Running,427061,12902960,427070"]
    (job,) = read("t.csv", lines, Choice(models=frozenset({"V100M16", "T4"}))).jobs
    assert (job.arrival, job.duration, job.gpus, job.least) == (427061.0, 12902960.0 - 427070.0, 0.46, 1)
    assert job.roles[0].requests == {"cpu": "6000m", "memory": "12288Mi", GPU_SHARE: "460"}
    terms = job.roles[0].spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["V100M16", "T4"]


# -- what is wrong ---------------------------------------------------------------------------------------------------------


def test_an_empty_file() -> None:
    assert faults([]) == ["t.csv: the file is empty: a trace is a CSV table with a header"]


def test_a_first_line_without_end_is_no_header() -> None:
    assert faults(["\0" * 200_000]) == ["t.csv, line 1: the header is no CSV: field larger than field limit (131072)"]


def test_a_header_alone() -> None:
    assert faults(PHILLY[:1]) == ["t.csv: there is no row below the header: a trace has at least one job"]


def test_a_missing_column_is_named_with_those_that_are_there() -> None:
    assert faults(["vc,job,arrival_s,gpus", "a,0,0,1"]) == [
        "t.csv, line 1: columns are missing: duration_s; the table has vc, job, arrival_s, gpus"
    ]


def test_a_table_of_no_known_shape() -> None:
    (fault,) = faults(["a,b,c", "1,2,3"])
    assert fault.startswith("t.csv, line 1: the columns are of no known trace. Known are philly: vc, job, arrival_s")


def test_negative_times_and_texts_are_told_all_at_once_with_line_and_column() -> None:
    lines = [PHILLY[0], "a,0,-5,1,10,,", "a,1,5,one,10,,", "a,2,5,1,,,", "a,3,5,99999,1,,"]
    assert faults(lines) == [
        "t.csv, line 2, column arrival_s: -5 is below 0; it must be 0 or more",
        "t.csv, line 3, column gpus: 'one' is not a whole number, such as 8",
        "t.csv, line 4, column duration_s: an empty cell is not a number, such as 120 or 0.5",
        "t.csv, line 5, column gpus: 99999 must be from 0 to 10000",
    ]


@pytest.mark.parametrize("text", ["inf", "nan", "1_000", "٣", "0x10", "1e999"])
def test_numbers_that_python_would_take_and_nobody_means(text: str) -> None:
    assert "is not a number" in faults([PHILLY[0], f"a,0,{text},1,10,,"])[0]


def test_a_row_of_another_length_and_a_job_given_twice() -> None:
    assert faults([PHILLY[0], "a,0,0,1,10,x", "a,1,0,1,10,x,1", "a,1,0,1,10,x,1"]) == [
        "t.csv, line 2: the row has 6 cells, the header 7",
        "t.csv, line 4: the job a-000001 is given twice; first in line 3",
    ]


def test_faults_are_counted_beyond_the_first_twenty() -> None:
    found = faults([PHILLY[0], *(f"a,{i},-1,1,10,x,1" for i in range(50))])
    assert len(found) == 21
    assert found[-1] == "t.csv: and 30 more faults"


def test_an_unknown_gpu_model_is_named_with_those_that_nodes_have() -> None:
    lines = [OPENB, "p1,6000,12288,1,460,H100,LS,Running,0,10,0"]
    assert faults(lines, Choice(models=frozenset({"T4", "P100"}))) == [
        "t.csv, line 2, column gpu_spec: no node has the GPU model H100; there are P100, T4"
    ]


def test_a_pod_that_ends_before_it_begins() -> None:
    assert faults([OPENB, "p1,1,1,0,,,LS,Running,50,10,60"]) == [
        "t.csv, line 2, column deletion_time: 10 is before the pod was scheduled, at 60"
    ]


def test_a_part_that_is_not_there_is_told_with_those_that_are() -> None:
    assert faults(PHILLY, Choice(part="zz")) == ["t.csv: there is no part 'zz' in it; there are ab12 (1 jobs)"]


def test_an_unknown_application_of_pollux() -> None:
    lines = ["set,workload,name,time,application,num_replicas,batch_size", "w,1,x-0,107,doom,4,12"]
    assert faults(lines)[0].startswith("t.csv, line 2, column application: the run time of an application 'doom' is not known")


# -- nodes -----------------------------------------------------------------------------------------------------------------


def test_a_size_names_equal_nodes() -> None:
    found = node_lists.of_size("3x8:A100")
    assert found is not None
    assert [node["metadata"]["name"] for node in found] == ["node-0000", "node-0001", "node-0002"]
    assert found[0]["status"]["allocatable"][GPU] == "8"
    assert node_lists.of_size("nodes.csv") is None


def test_a_cluster_of_no_nodes() -> None:
    with pytest.raises(WorkloadError, match="0x8: a cluster has from 1 to 50,000 nodes"):
        node_lists.of_size("0x8")


def test_a_shape_of_tiresias() -> None:
    lines = ["num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node", "2,3,4,40,256"]
    assert len(node_lists.read("n.csv", lines)) == 6


def test_nodes_of_a_virtual_cluster() -> None:
    lines = ["vc,node num", "a,2", "b,3"]
    assert len(node_lists.read("n.csv", lines, part="b")) == 3
    with pytest.raises(WorkloadError, match="there is no node for c in it"):
        node_lists.read("n.csv", lines, part="c")


# -- the real files --------------------------------------------------------------------------------------------------------


def lines_of(path: Path) -> list[str]:
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode().splitlines()
    return path.read_text("utf-8").splitlines()


def test_the_real_traces_read_without_a_fault(shared_dir: Path) -> None:
    traces = shared_dir / "data" / "traces"
    counts = {}
    for name in (
        "philly/philly_jobs_by_vc.csv.gz",
        "pollux/pollux_workloads.csv",
        "tiresias/60_job.csv",
        "openb/openb_pod_list_default.csv",
        "openb/openb_pod_list_gpuspec33.csv.gz",
        "openb/openb_pod_list_multigpu50.csv.gz",
        "openb/openb_pod_list_cpu250.csv.gz",
    ):
        trace = read(name, lines_of(traces / name), Choice())
        counts[name.split("/")[1].split(".")[0]] = (trace.shape, len(trace.jobs))
    assert counts == {
        "philly_jobs_by_vc": ("philly", 15264),
        "pollux_workloads": ("pollux", 2560),
        "60_job": ("tiresias", 60),
        "openb_pod_list_default": ("openb", 8152),
        "openb_pod_list_gpuspec33": ("openb", 8152),
        "openb_pod_list_multigpu50": ("openb sizes", 9061),
        "openb_pod_list_cpu250": ("openb", 9420),
    }


def test_the_real_philly_keeps_its_facts(shared_dir: Path) -> None:
    path = shared_dir / "data" / "traces" / "philly" / "philly_jobs_by_vc.csv.gz"
    gpus = Counter(int(job.gpus) for job in read("philly", lines_of(path), Choice()).jobs)
    assert (gpus[1], gpus[4], gpus[8], gpus[2], gpus[16], gpus[32]) == (10480, 2044, 1916, 463, 255, 91)


def test_the_real_node_lists(shared_dir: Path) -> None:
    traces = shared_dir / "data" / "traces"
    assert len(node_lists.read("n", lines_of(traces / "openb" / "openb_node_list_all_node.csv"))) == 1523
    assert len(node_lists.read("n", lines_of(traces / "tiresias" / "n160g8.csv"))) == 160
    assert len(node_lists.read("n", lines_of(traces / "philly" / "philly_vc_nodes.csv"), part="7f04ca")) == 32
