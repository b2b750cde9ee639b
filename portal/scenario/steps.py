"""What each step does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster import objects
from cluster.kinds import CONFIG_MAP, CRON_JOB, HYPER_NODE, JOB, JOB_FLOW, JOB_TEMPLATE, NODE, POD, PRIORITY_CLASS, QUEUE
from cluster.port import Obj
from jobs import operations as jobs
from portal.scenario import objects as make
from portal.scenario.errors import Failed
from portal.scenario.world import DAY, MIDNIGHT, World
from queues import operations as queues

Do = Callable[[World, Any], None]

STEPS: dict[str, Do] = {}
"""By their words. `check`, `repeat` and `repeat_steps` are the player's, words about pages are in `pages`."""


def step(do: Do) -> Do:
    """Decorator: the function's name is the step's word."""
    STEPS[do.__name__.rstrip("_")] = do
    return do


def set_up(world: World, setup: dict[str, Any]) -> None:
    """Make the cluster of a case, in the order written. Raises Failed when anything of it is refused."""
    for word, value in setup.items():
        if word in _SETUP:
            _SETUP[word](world, value)
    world.settle()


def _must(world: World, name: str, write: Callable[[], object]) -> None:
    if not world.ask(name, write):
        raise Failed(f"the setup is refused: {world.answers[name]}")
    world.answers.pop(name)
    world.refusal = None


def _nodes(world: World, value: Any) -> None:
    for words in make.nodes(value):
        world.node_words[words["name"]] = dict(words)
        _must(world, words["name"], lambda words=words: _register(world, make.node(words)))


def _register(world: World, node: Obj) -> None:
    node["status"]["conditions"] = [make.ready(objects.now_stamp(world.clock))]
    world.cluster.create(NODE, node)


def _queues(world: World, value: Any) -> None:
    for words in value:
        name = words["name"]
        if world.find(QUEUE, name) is None:
            _must(world, name, lambda words=words: queues.create(world.cluster, make.queue(words)))
        elif changes := make.queue_spec(words):
            _must(world, name, lambda name=name, changes=changes: queues.update(world.cluster, name, changes))
    world.settle()


def _priorities(world: World, value: Any) -> None:
    for name, number in value.items():
        made = make.priority_class(name, number)
        _must(world, name, lambda made=made: world.cluster.create(PRIORITY_CLASS, made))


def _hypernodes(world: World, value: Any) -> None:
    for words in value:
        world.domains[words["name"]] = words
        _must(world, words["name"], lambda words=words: world.cluster.create(HYPER_NODE, make.hypernode(words)))


def _templates(world: World, value: Any) -> None:
    for words in value:
        made = make.template(words)
        _must(world, words["name"], lambda made=made: jobs.submit_kind(world.cluster, JOB_TEMPLATE, made))


def _objects(world: World, value: Any) -> None:
    number = 0
    for words in value:
        if words["kind"] == "ConfigMap":
            _must(world, words["name"], lambda words=words: world.cluster.create(CONFIG_MAP, make.config_map(words)))
            continue
        for _ in range(words["count"]):
            _must(world, "jobs", lambda words=words, number=number: _existing(world, f"job-{number}", words))
            number += 1


def _existing(world: World, name: str, words: dict[str, Any]) -> None:
    """A job that is there already, in a phase."""
    namespace = words.get("namespace", make.NAMESPACE)
    task = {"tasks": {"w": {"replicas": 1}}, **({"queue": words["queue"]} if "queue" in words else {})}
    jobs.submit(world.cluster, make.job(name, task, namespace))
    state = {"phase": words.get("phase", "Running"), "lastTransitionTime": objects.now_stamp(world.clock)}
    world.cluster.patch_status(JOB, name, namespace, {"state": state})


_SETUP: dict[str, Do] = {
    "nodes": _nodes,
    "queues": _queues,
    "priorities": _priorities,
    "hypernodes": _hypernodes,
    "templates": _templates,
    "objects": _objects,
}

# --- jobs and pods ------------------------------------------------------------------------------------------------


@step
def submit(world: World, words: dict[str, Any]) -> None:
    """A job."""
    _submit(world, words["job"], words)


@step
def submit_many(world: World, words: dict[str, Any]) -> None:
    """Equal jobs, numbered from 0."""
    world.many[words["job"]] = words["count"]
    for index in range(words["count"]):
        _submit(world, f"{words['job']}-{index}", words)


def _submit(world: World, name: str, words: dict[str, Any]) -> None:
    world.ask(name, lambda: jobs.submit(world.cluster, make.job(name, words)))


@step
def submit_pod(world: World, words: dict[str, Any]) -> None:
    """A plain pod."""
    world.ask(words["name"], lambda: world.cluster.create(POD, make.pod(words)))


@step
def submit_flow(world: World, words: dict[str, Any]) -> None:
    """A flow of jobs, made from the templates of the setup."""
    world.ask(words["name"], lambda: jobs.submit_kind(world.cluster, JOB_FLOW, make.flow(words)))


@step
def submit_cron(world: World, words: dict[str, Any]) -> None:
    """A job by schedule."""
    world.ask(words["name"], lambda: jobs.submit_kind(world.cluster, CRON_JOB, make.cron(words)))


@step
def lose(world: World, words: dict[str, Any]) -> None:
    """A field of a cron job is emptied: one of its status, or of its spec."""
    name, field = words.get("cron", ""), words.get("field", "")
    cron = world.find(CRON_JOB, name)
    if cron is None:
        raise Failed(f"there is no CronJob {name!r}")
    inner = field.rpartition(".")[2]
    if field.startswith("spec.") or (field == inner and inner in cron["spec"]):
        world.cluster.patch(CRON_JOB, name, make.NAMESPACE, {"spec": {inner: None}})
    else:
        world.cluster.patch_status(CRON_JOB, name, make.NAMESPACE, {inner: None})


@step
def finish(world: World, words: dict[str, Any]) -> None:
    """A pod ends."""
    world.kubelet.end(world.pod(words["pod"]), words["exit"])


@step
def finish_all(world: World, words: dict[str, Any]) -> None:
    """Every running pod of a job, or of all jobs of a flow, ends."""
    names = [words["job"]] if "job" in words else world.jobs_of_flow(words.get("flow", ""))
    for pod in [pod for name in names for pod in world.running(name)]:
        world.kubelet.end(pod, words["exit"])


@step
def finish_some(world: World, words: dict[str, Any]) -> None:
    """The first running pods of a job end."""
    for pod in world.running(words["job"])[: words["count"]]:
        world.kubelet.end(pod, words["exit"])


@step
def pod_state(world: World, words: dict[str, Any]) -> None:
    """A pod's first container waits, for a reason."""
    pod = world.pod(words["pod"])
    statuses = [dict(status) for status in (pod.get("status") or {}).get("containerStatuses") or ()]
    if not statuses:
        statuses = [{"name": container["name"], "restartCount": 0} for container in pod["spec"]["containers"]]
    statuses[0] |= {"ready": False, "started": False, "state": {"waiting": {"reason": words["state"]}}}
    world.kubelet.report(pod, {"containerStatuses": statuses})


@step
def scale(world: World, words: dict[str, Any]) -> None:
    """A task gets another number of replicas."""
    tasks = objects.clone(world.job(words["job"]))["spec"]["tasks"]
    found = [task for task in tasks if task["name"] == words["task"]]
    if not found:
        raise Failed(f"job {words['job']} has no task {words['task']!r}")
    found[0]["replicas"] = words["replicas"]
    body = {"spec": {"tasks": tasks}}
    world.ask(words["job"], lambda: world.cluster.patch(JOB, words["job"], make.NAMESPACE, body))


@step
def job_action(world: World, words: dict[str, Any]) -> None:
    """A Command for a job."""
    action = "suspend" if words["action"] == "abort" else words["action"]
    world.ask(words["job"], lambda: jobs.act(world.cluster, make.NAMESPACE, words["job"], action))


@step
def delete(world: World, words: dict[str, Any]) -> None:
    """A job, a queue or a pod is deleted."""
    if len(words) != 1:
        raise Failed("delete names one job, queue or pod")
    word, name = next(iter(words.items()))
    kind = {"job": JOB, "queue": QUEUE, "pod": POD}[word]
    world.ask(name, lambda: world.cluster.delete(kind, name, make.NAMESPACE if kind.namespaced else ""))
    world.kubelet.settle()


# --- queues -------------------------------------------------------------------------------------------------------


@step
def create_queue(world: World, words: dict[str, Any]) -> None:
    """A queue, which may be refused."""
    world.ask(words["name"], lambda: queues.create(world.cluster, make.queue(words)))


@step
def queue_update(world: World, words: dict[str, Any]) -> None:
    """Fields of a queue are set, which may be refused."""
    world.ask(words["queue"], lambda: queues.update(world.cluster, words["queue"], make.queue_spec(words)))


@step
def queue_action(world: World, words: dict[str, Any]) -> None:
    """A Command for a queue."""
    world.ask(words["queue"], lambda: queues.act(world.cluster, words["queue"], words["action"]))


# --- nodes, time, processes ---------------------------------------------------------------------------------------


@step
def node_update(world: World, words: dict[str, Any]) -> None:
    """Fields of a node are set; its other resources are replaced as a whole."""
    name = words["node"]
    if name not in world.node_words:
        raise Failed(f"there is no node {name!r}")
    known = world.node_words[name]
    known |= {word: value for word, value in words.items() if word != "node"}
    new, old = make.node(known), world.cluster.get(NODE, name)
    amounts, gone = new["status"]["allocatable"], old["status"]["allocatable"].keys()
    amounts = {**dict.fromkeys(gone, None), **amounts}
    meta = {key: {**dict.fromkeys(old["metadata"].get(key) or {}, None), **(new["metadata"].get(key) or {})} for key in _MARKS}
    world.ask(name, lambda: world.cluster.patch(NODE, name, "", {"metadata": meta}))
    world.cluster.patch_status(NODE, name, "", {"allocatable": amounts, "capacity": amounts})


_MARKS = ("labels", "annotations")


@step
def lose_node_of(world: World, words: dict[str, Any]) -> None:
    """A pod's node leaves for good, with every pod on it."""
    node = world.pod(words["pod"])["spec"].get("nodeName")
    if not node:
        raise Failed(f"pod {words['pod']} has no node")
    world.cluster.delete(NODE, node)
    world.node_words.pop(node, None)
    for pod in world.pods():
        if pod["spec"].get("nodeName") == node:
            world.cluster.delete(POD, objects.name(pod), objects.namespace(pod), grace_seconds=0)
    world.kubelet.settle()


@step
def clock(world: World, words: dict[str, Any]) -> None:
    """Time moves forward to a time of day, stopping wherever a controller has something to do."""
    hour, minute = map(int, words["to"].split(":"))
    now = world.clock.now()
    target = MIDNIGHT + (now - MIDNIGHT) // DAY * DAY + hour * 3600 + minute * 60
    if target < now:
        target += DAY
    while (due := world.controllers.next_due()) is not None and due < target:
        world.clock.advance(max(due - world.clock.now(), 0.0))
        world.settle()
    world.clock.advance(max(target - world.clock.now(), 0.0))
    world.settle()


@step
def schedule(world: World, words: Any) -> None:
    """Cycles."""
    if words == "until-quiet":
        world.until_quiet()
        return
    for _ in range(1 if words == "one-cycle" else words["cycles"]):
        world.cycle()


@step
def settle(world: World, words: bool) -> None:
    """Controllers alone."""
    world.settle()


@step
def restart_controller(world: World, words: bool) -> None:
    """A new controller process."""
    world.restart_controllers()
