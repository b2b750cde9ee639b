"""The pytorch plugin: where the master is, how many processes there are, and which one each pod is."""

from __future__ import annotations

from cluster import objects
from cluster.port import Obj
from jobs.keys import index_of
from jobs.plugins.base import Plugin
from jobs.plugins.containers import add_env, containers, open_port
from jobs.plugins.flags import Flag
from jobs.plugins.hosts import domain, named
from jobs.roles import role_of

WAITER = "wait-for-master"
_SECONDS_BETWEEN = 2


class Pytorch(Plugin):
    """`MASTER_ADDR`, `MASTER_PORT`, `WORLD_SIZE` and `RANK` in the regular containers, one process a pod."""

    name = "pytorch"
    flags = (
        Flag("master", "master"),
        Flag("worker", "worker"),
        Flag("port", 23456, is_port=True),
        Flag("wait-master-enabled", False),
        Flag("wait-master-timeout", 300),
        Flag("wait-master-image", "busybox:1.36.1"),
    )
    needs = ("svc",)

    def on_pod_create(self, pod: Obj, job: Obj) -> None:
        """Add variables and port; workers may wait for the master first. A job without a master is left as it is."""
        given, spec = self.arguments, job["spec"]
        master, worker = named(spec, given.text("master")), named(spec, given.text("worker"))
        if master is None:
            return
        address, port = domain(objects.name(job), master, 0), given.whole("port")
        roles = [master] if worker is None or worker is master else [master, worker]
        size = sum(int(task.get("replicas") or 0) for task in roles)
        variables = [("MASTER_ADDR", address), ("MASTER_PORT", str(port)), ("WORLD_SIZE", str(size))]
        if role_of(pod) == given.text("worker"):
            variables.append(("RANK", str(index_of(objects.name(pod)) + 1)))
            self._let_wait(pod, address)
        elif role_of(pod) == given.text("master"):
            variables.append(("RANK", "0"))
        for container in containers(pod, init=False):
            open_port(container, "pytorchjob-port", port)
            add_env(container, *variables)

    def _let_wait(self, pod: Obj, address: str) -> None:
        """A last init container that ends when the master answers."""
        waiting = pod["spec"].get("initContainers") or []
        if not self.arguments.switch("wait-master-enabled") or any(each.get("name") == WAITER for each in waiting):
            return
        script = _wait_script(address, self.arguments.whole("port"), self.arguments.whole("wait-master-timeout"))
        waiter = {"name": WAITER, "image": self.arguments.text("wait-master-image"), "command": ["sh", "-c", script]}
        pod["spec"]["initContainers"] = [*waiting, waiter]


def _wait_script(address: str, port: int, timeout: int) -> str:
    """Probes with nc, or with bash where there is no nc; gives up after `timeout` seconds."""
    return f"""waited=0
until nc -z {address} {port} 2>/dev/null || (echo > /dev/tcp/{address}/{port}) 2>/dev/null; do
  if [ "$waited" -ge {timeout} ]; then
    echo "The master {address}:{port} did not answer within {timeout} seconds"
    exit 1
  fi
  echo "Waiting for the master {address}:{port}, $waited of {timeout} seconds"
  sleep {_SECONDS_BETWEEN}
  waited=$((waited + {_SECONDS_BETWEEN}))
done
echo "The master {address}:{port} answers"
"""
