"""extender: what goes over the wire, what its answers do, and what becomes of a cycle when it fails."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from cluster.port import Obj
from scheduler import conf
from scheduler.calls import Caller
from scheduler.conf import Arguments, ConfError
from scheduler.framework.explain import Code, Stage
from scheduler.plugins.extender.config import VERBS, Config
from tests.scheduler.world import World, gang, node, queue

Answer = dict[str, Any] | bytes | int


class Server(ThreadingHTTPServer):
    """A small extender: answers by verb, and everything that it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, Callable[[Any], Answer] | Answer] = {}
        self.asked: list[tuple[str, Any]] = []
        self.released = threading.Event()

    def of(self, verb: str) -> list[Any]:
        return [body for asked, body in self.asked if asked == verb]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        assert self.headers["Content-Type"] == "application/json"
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verb = self.path.removeprefix("/ext/")
        self.server.asked.append((verb, body))
        answer = self.server.answers.get(verb, {})
        if answer == "hang":
            self.server.released.wait(20)
            answer = {}
        found = answer(body) if callable(answer) else answer
        status, text = (
            (found, b"no") if isinstance(found, int) else (200, found if isinstance(found, bytes) else json.dumps(found).encode())
        )
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.released.set()
    made.shutdown()
    made.server_close()
    thread.join()


def configuration(server: Server | str, *verbs: str, actions: str = "enqueue, allocate", **more: Any) -> str:
    """A configuration whose extender is asked by its own words."""
    prefix = server if isinstance(server, str) else f"http://127.0.0.1:{server.server_port}/ext/"
    arguments = {"extender.urlPrefix": prefix, **{f"extender.{verb}Verb": verb for verb in verbs}}
    arguments |= {f"extender.{key}": value for key, value in more.items()}
    lines = "".join(f"      {key}: {json.dumps(value)}\n" for key, value in arguments.items())
    return f'actions: "{actions}"\ntiers:\n- plugins:\n  - name: gang\n  - name: extender\n    arguments:\n{lines}'


def cycle(text: str, *parts: Any, times: int = 1) -> World:
    world = World(*parts, conf=text)
    caller = Caller()
    world.offline.cache.post = caller.post_all
    try:
        return world.cycle(times)
    finally:
        caller.close()


NODES = [node(f"n{i}") for i in range(3)]


# -- the wire ----------------------------------------------------------------------------------------------------------------


def test_nodes_are_filtered_by_what_it_says_of_each(server: Server) -> None:
    server.answers["predicate"] = lambda asked: {"status": "" if asked["node"]["Name"] == "n2" else "not here", "code": 3}
    world = cycle(configuration(server, "predicate"), NODES, gang("g", 1, cpu=2, memory="1Gi"))
    assert world.bound == {"g-w-0": "n2"}
    asked = server.of("predicate")
    assert sorted(each["node"]["Name"] for each in asked) == ["n0", "n1", "n2"]
    task, place = asked[0]["task"], asked[0]["node"]
    assert {key: task[key] for key in ("UID", "Job", "Name", "Namespace", "TaskRole", "Status", "NodeName", "Priority")} == {
        "UID": "pod-g-w-0", "Job": "default/g", "Name": "g-w-0", "Namespace": "default", "TaskRole": "w", "Status": 1,
        "NodeName": "", "Priority": 1,
    }  # fmt: skip
    assert task["Resreq"] == task["InitResreq"] == {
        "MilliCPU": 2000, "Memory": 1 << 30, "ScalarResources": {"pods": 1}, "MaxTaskNum": 0,
    }  # fmt: skip
    assert task["Pod"]["spec"]["containers"][0]["name"] == "c"
    assert place["Idle"] == {"MilliCPU": 8000, "Memory": 64 << 30, "ScalarResources": {"pods": 110}, "MaxTaskNum": 110}
    assert place["Used"] == {"MilliCPU": 0, "Memory": 0, "ScalarResources": None, "MaxTaskNum": 0}
    assert (place["State"], place["Tasks"], place["Node"]["kind"]) == ({"Phase": 1, "Reason": ""}, {}, "Node")


def test_a_refusal_by_all_is_told_as_its_own(server: Server) -> None:
    server.answers["predicate"] = {"status": "no"}
    world = cycle(configuration(server, "predicate"), NODES, gang("g", 1, cpu=2))
    assert world.bound == {}
    assert (world.verdicts["g"].code, world.verdicts["g"].rejected) == (Code.NODES_REFUSED, {"extender": 3})


def test_scores_of_nodes_are_added(server: Server) -> None:
    server.answers["prioritize"] = lambda asked: {"NodeScore": {each["Name"]: int(each["Name"][1:]) for each in asked["nodes"]}}
    world = cycle(configuration(server, "prioritize"), NODES, gang("g", 2, cpu=8))
    assert world.bound == {"g-w-0": "n2", "g-w-1": "n1"}
    assert [[each["Name"] for each in asked["nodes"]] for asked in server.of("prioritize")] == [["n0", "n1", "n2"], ["n0", "n1"]]


@pytest.mark.parametrize(
    "answer", [{"nodeScore": {"n2": 5}, "errorMessage": "broken"}, {"nodeScore": [1]}, {"nodeScore": {"n2": "5"}}]
)
def test_scores_that_cannot_be_read_are_none(server: Server, answer: Answer) -> None:
    server.answers["prioritize"] = answer
    assert cycle(configuration(server, "prioritize"), NODES, gang("g", 1, cpu=2)).bound == {"g-w-0": "n0"}


def test_sessions_are_opened_and_closed(server: Server) -> None:
    cycle(configuration(server, "onSessionOpen", "onSessionClose"), NODES, queue("q"), gang("g", 2, cpu=1, queue="q"))
    (opened,), (closed,) = server.of("onSessionOpen"), server.of("onSessionClose")
    assert closed == {}
    assert sorted(opened) == ["Jobs", "NamespaceInfo", "NodeList", "Nodes", "Queues", "RevocableNodes"]
    assert sorted(opened["Queues"]) == ["default", "q", "root"]
    assert opened["Queues"]["q"]["Weight"] == 1
    job = opened["Jobs"]["default/g"]
    assert (job["UID"], job["Queue"], job["MinAvailable"], sorted(job["Tasks"])) == (
        "default/g", "q", 2, ["pod-g-w-0", "pod-g-w-1"],
    )  # fmt: skip
    assert list(job["TaskStatusIndex"]) == ["1"]
    assert job["TotalRequest"]["MilliCPU"] == 2000
    assert job["PodGroup"]["spec"]["minMember"] == 2


@pytest.mark.parametrize(("status", "phase"), [(-1, "Pending"), (0, "Inqueue"), (1, "Inqueue")])
def test_it_votes_on_admission_and_hears_of_it(server: Server, status: int, phase: str) -> None:
    server.answers["jobEnqueueable"] = {"status": status}
    text = configuration(server, "jobEnqueueable", "jobEnqueued", actions="enqueue")
    world = cycle(text, NODES, gang("g", 1, cpu=1, minResources={"cpu": "1"}))
    assert world.phase("g") == phase
    assert [asked["job"]["UID"] for asked in server.of("jobEnqueued")] == ([] if status < 0 else ["default/g"])
    if status < 0:
        assert (world.verdicts["g"].stage, world.verdicts["g"].code) == (Stage.ADMISSION, Code.EXTENDER)


def test_an_overused_queue_places_nothing(server: Server) -> None:
    server.answers["queueOverused"] = lambda asked: {"overused": asked["queue"]["Name"] == "q"}
    world = cycle(configuration(server, "queueOverused"), NODES, queue("q"), gang("g", 1, cpu=1, queue="q"), gang("h", 1, cpu=1))
    assert world.bound == {"h-w-0": "n0"}
    assert (world.verdicts["g"].stage, world.verdicts["g"].code, world.verdicts["g"].queue) == (
        Stage.QUEUE_LIMIT, Code.EXTENDER, "q",
    )  # fmt: skip


def test_a_gang_starts_when_it_says_so(server: Server) -> None:
    def ready(asked: Any) -> Answer:
        by_status = asked["job"]["TaskStatusIndex"]
        return {"status": sum(len(by_status.get(flag, {})) for flag in ("2", "8")) >= 3}  # allocated, and being bound

    server.answers["jobReady"] = ready
    world = cycle(configuration(server, "jobReady"), NODES, gang("g", 4, 2, cpu=1), gang("h", 2, cpu=1))
    assert world.started() == {"g": 4}
    # Placed one by one from the gang's own minimum on; h, of two pods, never is.
    assert (world.verdicts["h"].stage, world.verdicts["h"].code) == (Stage.GANG, Code.EXTENDER)


def test_it_hears_of_each_task_that_gets_a_node_and_may_refuse(server: Server) -> None:
    server.answers["allocateFunc"] = lambda asked: {"errorMessage": "" if asked["task"]["Name"] != "g-w-1" else "not this one"}
    text = configuration(server, "allocateFunc", "deallocateFunc")
    world = cycle(text, NODES, gang("g", 3, 2, cpu=1))
    assert world.bound == {"g-w-0": "n0", "g-w-2": "n0"}
    assert [(each["task"]["Name"], each["task"]["NodeName"]) for each in server.of("allocateFunc")] == [
        ("g-w-0", "n0"), ("g-w-1", "n0"), ("g-w-2", "n0"),
    ]  # fmt: skip
    assert [each["task"]["Name"] for each in server.of("deallocateFunc")] == ["g-w-1"]
    nodes = world.offline.cache.nodes
    assert int(nodes.used[0, 0]) == 2000


def test_a_gang_that_it_breaks_is_taken_back_whole(server: Server) -> None:
    server.answers["allocateFunc"] = lambda asked: {"errorMessage": "" if asked["task"]["Name"] != "g-w-1" else "not this one"}
    world = cycle(configuration(server, "allocateFunc"), NODES, gang("g", 2, cpu=1), gang("h", 1, cpu=8))
    assert world.bound == {"h-w-0": "n0"}
    assert world.offline.cache.jobs["default/g"].ready_count() == 0


@pytest.mark.parametrize(
    ("answer", "evicted"),
    [
        (lambda asked: {"status": 1, "victims": asked["evictees"]}, True),
        (lambda asked: {"status": 1, "victims": []}, False),
        (lambda asked: {"status": 0, "victims": []}, True),  # it abstains: priority alone decides
        (lambda asked: 500, False),
    ],
)
def test_it_has_a_say_about_victims(server: Server, answer: Callable[[Any], Answer], evicted: bool) -> None:
    server.answers["preemptable"] = answer
    text = configuration(server, "preemptable", actions="enqueue, allocate, preempt").replace(
        "- name: gang\n", "- name: gang\n    enablePreemptable: false\n  - name: priority\n"
    )
    low, high = (
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": n}, "value": v}
        for n, v in (("low", 1), ("high", 9))
    )
    running = gang("low", 1, 0, cpu=8, priorityClassName="low", pod_spec={"nodeName": "n0", "priority": 1})
    running[0]["status"] = {"phase": "Running"}
    running[1]["status"] = {"phase": "Running"}
    wanting = gang("high", 1, cpu=8, priorityClassName="high", pod_spec={"priority": 9})
    world = cycle(text, node("n0"), low, high, running, wanting)
    assert [eviction.name for eviction in world.cycles[0].evictions] == (["low-w-0"] if evicted else [])
    (asked, *_) = server.of("preemptable")
    assert (asked["evictor"]["UID"], [each["UID"] for each in asked["evictees"]]) == ("pod-high-w-0", ["pod-low-w-0"])


# -- failures ----------------------------------------------------------------------------------------------------------------

BROKEN: list[Answer] = [500, 404, b"not json", b"[]", b'{"padding":"' + b"a" * (10 << 20) + b'"}']


@pytest.mark.parametrize("answer", BROKEN, ids=["500", "404", "text", "list", "endless"])
@pytest.mark.parametrize("ignorable", [False, True])
@pytest.mark.parametrize("verb", ["predicate", "jobEnqueueable", "queueOverused", "allocateFunc", "prioritize", "onSessionOpen"])
def test_a_failed_call_refuses_unless_it_may_be_ignored(server: Server, verb: str, ignorable: bool, answer: Answer) -> None:
    server.answers[verb] = answer
    group = gang("g", 1, cpu=1, minResources={"cpu": "1"})
    world = cycle(configuration(server, verb, ignorable=ignorable), node("n0"), group)
    passes = ignorable or verb in ("prioritize", "onSessionOpen")
    assert bool(world.bound) is passes


def test_a_gang_waits_while_nobody_can_say_that_it_is_ready(server: Server) -> None:
    server.answers["jobReady"] = 500
    assert cycle(configuration(server, "jobReady"), NODES, gang("g", 1, cpu=1)).bound == {}
    assert cycle(configuration(server, "jobReady", ignorable=True), NODES, gang("g", 1, cpu=1)).bound == {"g-w-0": "n0"}


def test_after_a_failed_greeting_it_is_asked_nothing_more_that_cycle(server: Server) -> None:
    server.answers |= {"onSessionOpen": 500, "predicate": {"status": "no"}}
    world = cycle(configuration(server, "onSessionOpen", "predicate"), NODES, gang("g", 1, cpu=1))
    assert (world.bound, server.of("predicate")) == ({"g-w-0": "n0"}, [])
    world = cycle(configuration(server, "onSessionOpen", "predicate", ignorable=True), NODES, gang("g", 1, cpu=1))
    assert world.bound == {}


def test_one_that_hangs_is_asked_once_a_cycle(server: Server) -> None:
    server.answers["predicate"] = "hang"  # type: ignore[assignment]
    many = [node(f"n{i}") for i in range(40)]
    groups = [one for i in range(5) for one in gang(f"g{i}", 3, cpu=1, at=i)]
    world = cycle(configuration(server, "predicate", httpTimeout="50ms"), many, groups)
    assert world.bound == {}
    # So many at once as there are threads, and after the first that was not answered none.
    assert 1 <= len(server.of("predicate")) <= 32
    assert {verdict.rejected["extender"] for verdict in world.verdicts.values()} == {40}


def test_one_that_is_not_there_refuses_or_is_ignored() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        where = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert cycle(configuration(where, "predicate"), NODES, gang("g", 1, cpu=1)).bound == {}
        assert cycle(configuration(where, "predicate", ignorable=True), NODES, gang("g", 1, cpu=1)).bound == {"g-w-0": "n0"}


def test_trouble_is_said_when_it_begins_and_when_it_ends(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    answers = iter([500, 500, {}])
    server.answers["onSessionOpen"] = lambda asked: next(answers)
    server.answers["onSessionClose"] = b"no json"
    cycle(configuration(server, "onSessionOpen", "onSessionClose", ignorable=True), NODES, times=3)
    said = [record.message.partition("onSessionOpen: ")[2] for record in caplog.records if "onSessionOpen" in record.message]
    assert said == ["/ext/onSessionOpen answered 500", "it answers again"]
    assert [record.message.rpartition(": ")[2] for record in caplog.records if "onSessionClose" in record.message] == [
        "its answer is no JSON object"
    ]


def test_where_nobody_may_be_asked_it_is_as_if_it_were_not_there() -> None:
    world = World(NODES, gang("g", 1, cpu=1), conf=configuration("http://127.0.0.1:1", *VERBS)).cycle()
    assert world.bound == {"g-w-0": "n0"}


# -- arguments ---------------------------------------------------------------------------------------------------------------


def pod_spec(where: str, part: str, resource: str) -> Obj:
    return {where: [{"resources": {part: {resource: "1"}}}]}


@pytest.mark.parametrize(
    ("managed", "spec", "concerned"),
    [
        ([], pod_spec("containers", "requests", "cpu"), True),
        (["nvidia.com/gpu"], pod_spec("containers", "requests", "nvidia.com/gpu"), True),
        (["nvidia.com/gpu"], pod_spec("containers", "limits", "nvidia.com/gpu"), True),
        (["nvidia.com/gpu"], pod_spec("initContainers", "requests", "nvidia.com/gpu"), True),
        (["nvidia.com/gpu"], pod_spec("containers", "requests", "cpu"), False),
        (["nvidia.com/gpu", "amd.com/gpu"], pod_spec("containers", "requests", "amd.com/gpu"), True),
        (["nvidia.com/gpu"], {"containers": [{}]}, False),
    ],
)
def test_pods_that_ask_for_nothing_of_its_own_pass_by(managed: list[str], spec: Obj, concerned: bool) -> None:
    config = Config(Arguments("extender", {"extender.managedResources": managed}))
    assert config.concerns(spec) is concerned


def test_pods_that_pass_by_are_not_asked_about(server: Server) -> None:
    server.answers["predicate"] = {"status": "no"}
    text = configuration(server, "predicate", "prioritize", managedResources=["nvidia.com/gpu"])
    assert cycle(text, NODES, gang("g", 1, cpu=1)).bound == {"g-w-0": "n0"}
    assert server.asked == []


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("urlPrefix", "ftp://x", "must begin with http"),
        ("httpTimeout", "soon", "httpTimeout"),
        ("httpTimeout", "0s", "more than nothing"),
        ("httpTimeout", "2m", "at most a minute"),
        ("ignorable", "perhaps", "true or false"),
        ("managedResources", "nvidia.com/gpu", "must be a list"),
        ("predicateVerb", 3, "must be a text"),
    ],
)
def test_wrong_arguments_are_told_with_their_line(key: str, value: Any, words: str) -> None:
    text = configuration("http://x", "prioritize", **{key: value})
    with pytest.raises(ConfError, match=words) as caught:
        conf.load(text)
    assert caught.value.faults[0].line > 6
