"""Jobs: their phases, and what their controller puts around and into their pods."""

from __future__ import annotations

from cluster import objects
from cluster.kinds import CONFIG_MAP, JOB, POD
from cluster.port import Obj
from portal.scenario.expect.base import check, compare, differ, sets, spec, status
from portal.scenario.world import World


@check
def succeeded(world: World, value: dict[str, int]) -> list[str]:
    """The counter in the job's status."""
    return compare("succeeded", value, lambda name: int((status(world, JOB, name)).get("succeeded") or 0))


@check
def job_phase(world: World, value: dict[str, str]) -> list[str]:
    """The phase of a job."""
    return compare("phase of job", value, lambda name: (status(world, JOB, name).get("state") or {}).get("phase", ""))


@check
def not_created(world: World, value: list[str]) -> list[str]:
    """Jobs that never existed."""
    return [f"job {name} existed" for name in value if name in world.history.existed[JOB]]


@check
def plugins_in_force(world: World, value: dict[str, list[str]]) -> list[str]:
    """The job plugins after admission."""
    return sets("plugins of", value, lambda name: (spec(world, JOB, name).get("plugins") or {}).keys())


@check
def env(world: World, value: dict[str, dict[str, str]]) -> list[str]:
    """Variables in every container of a pod."""
    found = []
    for pod, wanted in value.items():
        for container in _containers(world, pod):
            seen = {each["name"]: each.get("value", "") for each in container.get("env") or ()}
            found += compare(f"variable of {pod}", wanted, lambda name, seen=seen: seen.get(name, "(missing)"))
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
            found += differ(f"file {file} of {job}", lines, mounted.get(file, "(missing)").splitlines())
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
    return compare("ConfigMap", value, lambda name: (world.find(CONFIG_MAP, name) or {}).get("data"))


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
