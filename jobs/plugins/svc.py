"""The svc plugin: pods of a job find each other by name, know who else there is, and are left in peace by others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from cluster import objects
from cluster.errors import FieldError
from cluster.kinds import CONFIG_MAP, NETWORK_POLICY, SERVICE, Kind
from cluster.port import Obj
from cluster.said import said
from jobs import keys
from jobs.plugins.base import Plugin, tasks_of
from jobs.plugins.containers import containers, mount
from jobs.plugins.flags import Flag
from jobs.plugins.hosts import domains, joined_length
from jobs.plugins.limits import MOST_DATA, is_service_name, no_service_name, too_long
from jobs.plugins.maker import Maker

MOUNT_PATH = "/etc/volcano"
_INSTEAD = f"say --inject-hosts-env=false and read the files in {MOUNT_PATH}"

_Roles = tuple[tuple[str, int, str, str], ...]
"""Of each role what its hosts follow from: name, replicas, hostname and subdomain of the template."""


class Svc(Plugin):
    """A headless Service, a ConfigMap of hosts mounted at `/etc/volcano`, and a NetworkPolicy."""

    name = "svc"
    flags = (
        Flag("publish-not-ready-addresses", False),
        Flag("disable-network-policy", False),
        Flag("inject-hosts-env", True),
    )

    def on_job_add(self, maker: Maker, job: Obj) -> None:
        """The ConfigMap, which the pods need; Service and NetworkPolicy, unless they are there."""
        self.on_job_update(maker, job)
        name, selector = objects.name(job), _selector(job)
        publish = self.arguments.switch("publish-not-ready-addresses")
        spec: Obj = {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": publish}
        maker.offer(SERVICE, name, {"spec": spec})
        if not self.arguments.switch("disable-network-policy"):
            peers = {"matchLabels": selector}
            spec = {"podSelector": peers, "ingress": [{"from": [{"podSelector": peers}]}], "policyTypes": ["Ingress"]}
            maker.offer(NETWORK_POLICY, name, {"spec": spec})
        for key, text in hosts_of(job).items() if self._injects else ():
            if key.endswith("_HOSTS") and (why := too_long(key, len(text), _INSTEAD)):
                maker.tell(why)

    def on_job_update(self, maker: Maker, job: Obj) -> None:
        """The ConfigMap follows the replicas; files in running pods follow it, their variables do not."""
        maker.keep(CONFIG_MAP, config_map_name(objects.name(job)), {"data": dict(hosts_of(job))})

    def makes(self, job: str) -> Iterator[tuple[Kind, str]]:
        """All three."""
        yield SERVICE, job
        yield CONFIG_MAP, config_map_name(job)
        if not self.arguments.switch("disable-network-policy"):
            yield NETWORK_POLICY, job

    def on_pod_create(self, pod: Obj, job: Obj) -> None:
        """A name in the Service's domain, the hosts as variables and as files."""
        name = config_map_name(objects.name(job))
        pod["spec"]["hostname"] = pod["spec"].get("hostname") or objects.name(pod)
        pod["spec"]["subdomain"] = pod["spec"].get("subdomain") or objects.name(job)
        if self._injects:
            variables = [key for task in job["spec"]["tasks"] for key in _variables(task["name"])]
            for container in containers(pod, init=True):
                container.setdefault("env", []).extend(
                    {"name": key, "valueFrom": {"configMapKeyRef": {"name": name, "key": key}}} for key in variables
                )
        mount(pod, {"name": name, "configMap": {"name": name}}, mountPath=MOUNT_PATH)

    @property
    def _injects(self) -> bool:
        return self.arguments.switch("inject-hosts-env")

    def check(self, spec: dict[str, Any], name: str) -> Iterator[FieldError]:
        """The Service has the job's name, and the hosts must fit into one ConfigMap."""
        if not is_service_name(name):
            yield FieldError("/metadata/name", no_service_name(name), "format")
        total = 2 * sum(joined_length(name, task) for task in tasks_of(spec))
        if total > MOST_DATA:
            why = said(
                "the names of all hosts take %(total)s bytes, and a ConfigMap holds %(most)s: use fewer pods or shorter names",
                total=total,
                most=MOST_DATA,
            )
            yield FieldError(self.at(), why, "range")


def config_map_name(job: str) -> str:
    """The ConfigMap with a job's hosts."""
    return f"{job}-svc"


def hosts_of(job: Obj) -> Mapping[str, str]:
    """What the ConfigMap holds: of each role its hosts, one a line and joined by commas, and their number."""
    roles = tuple(_facts(task) for task in job["spec"]["tasks"])
    return _hosts(objects.name(job), roles)


@lru_cache(maxsize=32)
def _hosts(job: str, roles: _Roles) -> Mapping[str, str]:
    data = {}
    for role, replicas, hostname, subdomain in roles:
        template = {"spec": {"hostname": hostname, "subdomain": subdomain}}
        names = domains(job, {"name": role, "replicas": replicas, "template": template})
        data[f"{role.replace('-', '_')}.host"] = "\n".join(names)
        data |= dict(zip(_variables(role), (",".join(names), str(len(names)))))
    return data


def _facts(task: dict[str, Any]) -> tuple[str, int, str, str]:
    spec = (task.get("template") or {}).get("spec") or {}
    return task["name"], int(task.get("replicas") or 0), spec.get("hostname") or "", spec.get("subdomain") or ""


def _variables(role: str) -> tuple[str, str]:
    """The names of a role's variables: its hosts, their number."""
    word = role.replace("-", "_").upper()
    return f"VC_{word}_HOSTS", f"VC_{word}_NUM"


def _selector(job: Obj) -> dict[str, str]:
    return {keys.JOB_NAME: objects.name(job), keys.JOB_NAMESPACE: objects.namespace(job)}
