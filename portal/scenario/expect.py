"""What each expectation asks. A check answers with what was seen where it does not hold; an empty list: it holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.utils import translation

from cluster import objects
from cluster.embedded.machines import GPU
from cluster.kinds import CONFIG_MAP, JOB, POD, QUEUE
from cluster.port import Obj
from cluster.quantities import parse_quantity
from jobs import reasons
from portal.scenario import objects as make
from portal.scenario.errors import NotSupported
from portal.scenario.world import World, phase_of
from queues.operations import state_of

Check = Callable[[World, Any], list[str]]

CHECKS: dict[str, Check] = {}
"""By their words; those about pages are added by `pages`."""
_LATER = ("flow_phase", "flow_jobs", "jobs_of")
TOLERANCE = 0.001


def check(function: Check) -> Check:
    """Decorator: the function's name is the expectation's word."""
    CHECKS[function.__name__] = function
    return function


def misses(world: World, expectations: Mapping[str, Any]) -> list[str]:
    """What of a mapping does not hold. Raises NotSupported for a word that is not built."""
    found: list[str] = []
    for word, value in expectations.items():
        if word not in CHECKS:
            raise NotSupported(word)
        found += CHECKS[word](world, value)
    return found


def _differ(what: str, want: Any, seen: Any) -> list[str]:
    return [] if want == seen else [f"{what}: {_said(seen)}, not {_said(want)}"]


def _said(value: Any) -> str:
    if isinstance(value, (set, frozenset)):
        value = sorted(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return str(value) or "nothing"


def _each(what: str, want: Mapping[str, Any], seen: Callable[[str], Any]) -> list[str]:
    return [miss for name, value in want.items() for miss in _differ(f"{what} {name}", value, seen(name))]


def _sets(what: str, want: Mapping[str, Iterable[str]], seen: Callable[[str], Iterable[str]]) -> list[str]:
    return _each(what, {name: set(value) for name, value in want.items()}, lambda name: set(seen(name)))


def _in_span(what: str, span: Any, seen: float) -> list[str]:
    low, high = (span.get("min"), span.get("max")) if isinstance(span, dict) else (span, span)
    if (low is None or seen >= low) and (high is None or seen <= high):
        return []
    return [f"{what}: {seen:g}, not {_range(low, high)}"]


def _range(low: Any, high: Any) -> str:
    if low == high:
        return str(low)
    return " and ".join(f"{word} {value}" for word, value in (("at least", low), ("at most", high)) if value is not None)


# --- several together ---------------------------------------------------------------------------------------------


@check
def one_of(world: World, value: list[dict[str, Any]]) -> list[str]:
    """At least one holds."""
    found = [misses(world, each) for each in value]
    return [] if not all(found) else [f"none of {len(found)} holds: {' | '.join('; '.join(each) for each in found)}"]


@check
def exactly_one_of(world: World, value: list[dict[str, Any]]) -> list[str]:
    """One and only one holds."""
    found = [misses(world, each) for each in value]
    holding = sum(not each for each in found)
    return [] if holding == 1 else [f"{holding} of {len(found)} hold: {' | '.join('; '.join(each) for each in found)}"]


@check
def never(world: World, value: dict[str, Any]) -> list[str]:
    """It was watched at every moment; `World.happened` says when it held."""
    when = world.happened.get(id(value))
    return [f"never {value}: it held at {when}"] if when else []


# --- pods that run ------------------------------------------------------------------------------------------------


@check
def running(world: World, value: dict[str, int]) -> list[str]:
    """Running pods of jobs, or of their tasks."""
    return _each("running", value, lambda name: len(world.running(name)))


@check
def running_at_least(world: World, value: dict[str, int]) -> list[str]:
    """A lower bound."""
    return [m for name, n in value.items() for m in _in_span(f"running {name}", {"min": n}, len(world.running(name)))]


@check
def running_at_most(world: World, value: dict[str, int]) -> list[str]:
    """An upper bound."""
    return [m for name, n in value.items() for m in _in_span(f"running {name}", {"max": n}, len(world.running(name)))]


@check
def running_total(world: World, value: dict[str, int]) -> list[str]:
    """Over all jobs of one submit_many."""

    def total(name: str) -> int:
        names = {f"{name}-{index}" for index in range(world.many.get(name, 0))}
        return sum(world.job_of(pod) in names for pod in world.running())

    return _each("running in total", value, total)


@check
def running_by_queue(world: World, value: dict[str, int]) -> list[str]:
    """By the queue of their jobs."""
    found = Counter(world.queue_of(pod) for pod in world.running())
    return _each("running in queue", value, lambda name: found[name])


@check
def running_pods(world: World, value: list[str]) -> list[str]:
    """The plain pods that run, exactly these."""
    plain = {objects.name(pod) for pod in world.running() if objects.owner(pod) is None}
    return _differ("plain pods that run", set(value), plain)


@check
def pending(world: World, value: list[str]) -> list[str]:
    """Pods that exist and have no node."""
    waiting = {objects.name(pod) for pod in world.pods() if not pod["spec"].get("nodeName")}
    there = {objects.name(pod) for pod in world.pods()}
    return [f"pod {name} {'has a node' if name in there else 'does not exist'}" for name in value if name not in waiting]


@check
def pending_count(world: World, value: dict[str, int]) -> list[str]:
    """Their number by job."""
    return _each("pending", value, lambda name: sum(not pod["spec"].get("nodeName") for pod in world.pods(name)))


# --- what happened ------------------------------------------------------------------------------------------------


@check
def bound_count(world: World, value: int) -> list[str]:
    """Bindings in the whole case."""
    return _differ("bindings", value, len(world.history.bound))


@check
def evicted(world: World, value: list[str]) -> list[str]:
    """Pods evicted by the scheduler in the whole case, exactly these."""
    return _differ("evicted", set(value), {each.pod for each in world.history.evictions})


@check
def evicted_count(world: World, value: int) -> list[str]:
    """Their number."""
    return _differ("evictions", value, len(world.history.evictions))


@check
def evictions_in_last(world: World, value: dict[str, int]) -> list[str]:
    """Evictions in the last so many cycles."""
    since = world.cycles - value["cycles"]
    seen = sum(each.cycle > since for each in world.history.evictions)
    return _differ(f"evictions in the last {value['cycles']} cycles", value["count"], seen)


@check
def whole_gangs_evicted(world: World, value: int) -> list[str]:
    """Jobs that lost all pods by eviction, while no other job fell below its minimum by it."""
    whole, broken = world.gangs_evicted()
    return _differ("whole gangs evicted", value, len(whole)) + [f"gang {name} was broken by evictions" for name in sorted(broken)]


@check
def job_admitted(world: World, value: list[str]) -> list[str]:
    """Jobs whose PodGroup has left the phase Pending."""
    return [f"{name} was not admitted" for name in value if name not in world.history.admitted]


@check
def job_not_admitted(world: World, value: list[str]) -> list[str]:
    """Jobs whose PodGroup has never left it."""
    return [f"{name} was admitted" for name in value if name in world.history.admitted]


@check
def pods_created(world: World, value: dict[str, int]) -> list[str]:
    """Pods ever made."""
    return _each("pods made of", value, lambda name: len(world.history.pods_made.get(name, ())))


@check
def pods(world: World, value: dict[str, list[str]]) -> list[str]:
    """Pods that exist now, in any phase."""
    return _sets("pods of", value, lambda name: [objects.name(pod) for pod in world.pods(name)])


@check
def pod_replaced(world: World, value: list[str]) -> list[str]:
    """Pods that are others than those that first ran under their names."""
    return [f"pod {name} {said}" for name in value if (said := _replaced(world, name)) != "was replaced"]


@check
def pod_not_replaced(world: World, value: list[str]) -> list[str]:
    """Pods that are still the same."""
    return [f"pod {name} {said}" for name in value if (said := _replaced(world, name)) != "is the same"]


def _replaced(world: World, name: str) -> str:
    pod, first = world.find(POD, name), world.history.first_ran.get(name)
    if pod is None:
        return "does not exist"
    if first is None:
        return "never ran"
    return "is the same" if objects.uid(pod) == first else "was replaced"


# --- jobs ---------------------------------------------------------------------------------------------------------


@check
def succeeded(world: World, value: dict[str, int]) -> list[str]:
    """The counter in the job's status."""
    return _each("succeeded", value, lambda name: int((_status(world, JOB, name)).get("succeeded") or 0))


@check
def job_phase(world: World, value: dict[str, str]) -> list[str]:
    """The phase of a job."""
    return _each("phase of job", value, lambda name: (_status(world, JOB, name).get("state") or {}).get("phase", ""))


@check
def not_created(world: World, value: list[str]) -> list[str]:
    """Jobs that never existed."""
    return [f"job {name} existed" for name in value if name in world.history.existed[JOB]]


@check
def plugins_in_force(world: World, value: dict[str, list[str]]) -> list[str]:
    """The job plugins after admission."""
    return _sets("plugins of", value, lambda name: (_spec(world, JOB, name).get("plugins") or {}).keys())


@check
def env(world: World, value: dict[str, dict[str, str]]) -> list[str]:
    """Variables in every container of a pod."""
    found = []
    for pod, wanted in value.items():
        for container in _containers(world, pod):
            seen = {each["name"]: each.get("value", "") for each in container.get("env") or ()}
            found += _each(f"variable of {pod}", wanted, lambda name, seen=seen: seen.get(name, "(missing)"))
    return found


@check
def env_absent(world: World, value: dict[str, list[str]]) -> list[str]:
    """Variables that no container of a pod has."""
    return [
        f"{pod} has the variable {each['name']}"
        for pod, names in value.items()
        for container in _containers(world, pod)
        for each in container.get("env") or ()
        if each["name"] in names
    ]


@check
def host_file(world: World, value: dict[str, dict[str, list[str]]]) -> list[str]:
    """Files that a ConfigMap brings into a job's pods, line by line."""
    found = []
    for job, files in value.items():
        mounted: dict[str, str] = {}
        for pod in world.pods(job)[:1]:
            for volume in pod["spec"].get("volumes") or ():
                mounted |= (world.find(CONFIG_MAP, (volume.get("configMap") or {}).get("name", "")) or {}).get("data") or {}
        for file, lines in files.items():
            found += _differ(f"file {file} of {job}", lines, mounted.get(file, "(missing)").splitlines())
    return found


@check
def created_before_pods(world: World, value: dict[str, list[str]]) -> list[str]:
    """Objects that were there before a job's first pod."""
    return [
        f"{name} was not there before the first pod of {job}"
        for job, wanted in value.items()
        for name in wanted
        if world.history.made_at.get(name, 1 << 62) > world.history.first_pod_at.get(job, 0)
    ]


@check
def configmap_unchanged(world: World, value: dict[str, dict[str, str]]) -> list[str]:
    """The data of a ConfigMap."""
    return _each("ConfigMap", value, lambda name: (world.find(CONFIG_MAP, name) or {}).get("data"))


@check
def port_open_on_every_container(world: World, value: dict[str, int]) -> list[str]:
    """A port that every container of every pod of a job declares."""
    return [
        f"a container of {objects.name(pod)} does not declare port {port}"
        for job, port in value.items()
        for pod in world.pods(job)
        for container in pod["spec"]["containers"]
        if port not in [each.get("containerPort") for each in container.get("ports") or ()]
    ]


def _containers(world: World, pod: str) -> list[Obj]:
    return list((world.find(POD, pod) or {"spec": {"containers": [{}]}})["spec"]["containers"])


def _status(world: World, kind: Any, name: str) -> Obj:
    return dict((world.find(kind, name) or {}).get("status") or {})


def _spec(world: World, kind: Any, name: str) -> Obj:
    return dict((world.find(kind, name) or {}).get("spec") or {})


# --- where pods are -----------------------------------------------------------------------------------------------


@check
def on_node(world: World, value: dict[str, str]) -> list[str]:
    """The node of a pod."""
    return _each("node of", value, lambda name: _spec(world, POD, name).get("nodeName", ""))


@check
def nodes_used(world: World, value: dict[str, list[str]]) -> list[str]:
    """The nodes of a job's running pods."""
    return _sets("nodes of", value, lambda name: [pod["spec"]["nodeName"] for pod in world.running(name)])


@check
def domains_used(world: World, value: dict[str, dict[str, int]]) -> list[str]:
    """On how many hypernodes of a tier a job's running pods sit."""
    found = []
    for job, words in value.items():
        nodes = {pod["spec"]["nodeName"] for pod in world.running(job)}
        domains = [
            name
            for name, each in world.domains.items()
            if each["tier"] == words["tier"] and nodes.intersection(world.nodes_below(name))
        ]
        found += _in_span(f"domains of tier {words['tier']} that {job} uses", words, len(domains))
    return found


@check
def gpu_used_per_node(world: World, value: Any) -> list[str]:
    """GPUs that pods hold on every node."""
    used = dict.fromkeys(world.node_words, 0)
    for pod in _holding(world):
        node = pod["spec"]["nodeName"]
        used[node] = used.get(node, 0) + objects.pod_requests(pod["spec"]).get(GPU, 0) // 1000
    return [miss for node, count in used.items() for miss in _in_span(f"GPUs used on {node}", value, count)]


def _holding(world: World) -> list[Obj]:
    """Pods that hold room on a node."""
    return [pod for pod in world.pods() if pod["spec"].get("nodeName") and phase_of(pod) not in ("Succeeded", "Failed")]


# --- queues -------------------------------------------------------------------------------------------------------


@check
def deserved(world: World, value: dict[str, dict[str, str]]) -> list[str]:
    """As the scheduler computed it in the last cycle."""
    shares = world.record.queues if world.record else {}
    return _amounts("deserved", value, lambda name: dict(shares[name].deserved) if name in shares else {})


@check
def queue_allocated(world: World, value: dict[str, dict[str, str]]) -> list[str]:
    """What a queue's pods hold."""

    def held(name: str) -> dict[str, int]:
        total: Counter[str] = Counter()
        for pod in _holding(world):
            if world.queue_of(pod) == name:
                total.update(objects.pod_requests(pod["spec"]))
        return dict(total)

    return _amounts("allocated", value, held)


@check
def queue_limit(world: World, value: dict[str, dict[str, str]]) -> list[str]:
    """A queue's own capability."""
    return _amounts("limit", value, lambda name: _limit(world, name))


@check
def effective_limit(world: World, value: dict[str, dict[str, str]]) -> list[str]:
    """The limit in force: of a queue and all above it the smallest."""

    def least(name: str) -> dict[str, int]:
        found: dict[str, int] = {}
        seen: set[str] = set()
        while name and name not in seen:
            seen.add(name)
            for resource, units in _limit(world, name).items():
                found[resource] = min(units, found.get(resource, units))
            name = _spec(world, QUEUE, name).get("parent", "")
        return found

    return _amounts("effective limit", value, least)


@check
def queue_state(world: World, value: dict[str, str]) -> list[str]:
    """Open, Closing or Closed."""
    return _each("state of queue", value, lambda name: str(state_of(world.find(QUEUE, name) or {})))


@check
def queue_weight(world: World, value: dict[str, int]) -> list[str]:
    """The weight of a queue."""
    return _each("weight of queue", value, lambda name: _spec(world, QUEUE, name).get("weight"))


@check
def gone(world: World, value: dict[str, list[str]]) -> list[str]:
    """What existed and does not now."""
    found = []
    for word, kind in (("queues", QUEUE), ("jobs", JOB)):
        for name in value.get(word) or ():
            if world.find(kind, name) is not None:
                found.append(f"{kind.kind} {name} is there")
            elif name not in world.history.existed[kind]:
                found.append(f"{kind.kind} {name} never existed")
    return found


def _limit(world: World, name: str) -> dict[str, int]:
    return objects.resource_units(_spec(world, QUEUE, name).get("capability"))


def _amounts(what: str, want: dict[str, dict[str, str]], seen: Callable[[str], dict[str, int]]) -> list[str]:
    """Amounts, compared on the resources that are named."""
    found = []
    for name, amounts in want.items():
        have = seen(name)
        for word, text in amounts.items():
            resource = make.resource_name(word)
            units, wanted = have.get(resource, 0), objects.to_units(resource, parse_quantity(text))
            if abs(units - wanted) > TOLERANCE * max(abs(units), abs(wanted)):
                said = objects.format_units(resource, units) if resource in have else "nothing"
                found.append(f"{what} {word} of queue {name}: {said}, not {text}")
    return found


# --- answers ------------------------------------------------------------------------------------------------------


@check
def accepted(world: World, value: list[str]) -> list[str]:
    """Whose last creation or edit was taken."""
    return [f"{name}: {_answer(world, name)}" for name in value if world.answers.get(name, "") is not None]


@check
def refused(world: World, value: list[str]) -> list[str]:
    """Whose last creation or edit was refused."""
    return [f"{name}: {_answer(world, name)}" for name in value if not world.answers.get(name)]


@check
def message_names(world: World, value: list[str]) -> list[str]:
    """Words in the message of the last refusal."""
    message = str(world.refusal) if world.refusal else ""
    return [f"the last refusal does not name {word}: {message or 'there was none'}" for word in value if word not in message]


def _answer(world: World, name: str) -> str:
    if name not in world.answers:
        return "nothing was asked"
    error = world.answers[name]
    return "was taken" if error is None else f"was refused: {error}"


@check
def reason(world: World, value: dict[str, dict[str, Any]]) -> list[str]:
    """Numbers and words in the English text that says why a job or a pod waits."""
    found = []
    for job, asked in value.items():
        text = explain(world, job)
        for each in [*asked.get("numbers", ()), *asked.get("words", ())]:
            choices = each if isinstance(each, list) else [each]
            if not any(_occurs(choice, text) for choice in choices):
                found.append(f"the reason of {job} does not say {' or '.join(choices)}: {text or 'there is none'}")
    return found


def _occurs(word: str, text: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w-]|\.\w)", text, re.IGNORECASE) is not None


def explain(world: World, job: str) -> str:
    """What the job's page says about why it waits."""
    verdict = world.verdict(job)
    if verdict is None:
        return ""
    found = verdict.as_dict()
    with translation.override("en"):
        return " ".join([f"{reasons.say(found)}.", *filter(None, reasons.headline(found))])


# --- shared cards -------------------------------------------------------------------------------------------------

_VGPU_IDS = "volcano.sh/vgpu-ids-new"


def _devices(pod: Obj) -> list[tuple[str, int, int]]:
    """(card, MiB, percent of its cores) of every device that a pod holds."""
    text = objects.annotations(pod).get(_VGPU_IDS, "")
    found = []
    for entry in re.split(r"[:;]", text):
        if entry:
            card, _kind, memory, cores = entry.split(",")
            found.append((card, int(memory), int(cores)))
    return found


def _per_card(world: World, amount: Callable[[int, int], int]) -> dict[str, int]:
    total = {
        f"{node}-card-{index}": 0
        for node, words in world.node_words.items()
        for index in range(sum(group["count"] for group in words.get("gpus") or ()))
    }
    for pod in _holding(world):
        for card, memory, cores in _devices(pod):
            total[card] = total.get(card, 0) + amount(memory, cores)
    return total


def _every_card(what: str, world: World, span: Any, amount: Callable[[int, int], int]) -> list[str]:
    return [m for card, seen in _per_card(world, amount).items() for m in _in_span(f"{what} of {card}", span, seen)]


@check
def memory_used_per_card(world: World, value: Any) -> list[str]:
    """MiB booked on every card."""
    return _every_card("MiB used", world, value, lambda memory, cores: memory)


@check
def cores_per_card(world: World, value: Any) -> list[str]:
    """Percent of cores booked on every card."""
    return _every_card("cores used", world, value, lambda memory, cores: cores)


@check
def pods_per_card(world: World, value: Any) -> list[str]:
    """Pods on every card."""
    cards: Counter[str] = Counter(card for pod in _holding(world) for card in {card for card, _, _ in _devices(pod)})
    return [m for card in _per_card(world, lambda m, c: 0) for m in _in_span(f"pods on {card}", value, cards[card])]


@check
def memory_booked_per_pod_mib(world: World, value: dict[str, int]) -> list[str]:
    """MiB on each card of each running pod of a job."""
    return [
        miss
        for job, wanted in value.items()
        for pod in world.running(job)
        for _, memory, _ in _devices(pod) or [("", 0, 0)]
        for miss in _differ(f"MiB booked by {objects.name(pod)}", wanted, memory)
    ]


@check
def cards_used(world: World, value: dict[str, int]) -> list[str]:
    """Different cards that a job's pods hold."""
    return _each("cards of", value, lambda name: len({card for pod in world.running(name) for card, _, _ in _devices(pod)}))
