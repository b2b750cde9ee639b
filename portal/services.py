"""What other processes offer, by the addresses that the settings name."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from cluster.admission import admission
from cluster.admitted import Admitted
from cluster.kubernetes import KubernetesCluster, connect
from portal import metrics

if TYPE_CHECKING:
    from redis import Redis

_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@cache
def redis() -> Redis:
    """Redis, at REDIS_URL."""
    from redis import Redis  # a tenth of a second, which who needs no Redis is spared

    if not settings.REDIS_URL:
        raise ImproperlyConfigured("workers in other processes need Redis: set REDIS_URL, such as redis://127.0.0.1:6379/0")
    return Redis.from_url(settings.REDIS_URL, socket_timeout=30, socket_connect_timeout=5, health_check_interval=30)


def connection(*, answer_seconds: float = 0.0, part: str = "portal", minds_budgets: bool = False) -> KubernetesCluster:
    """A client for the cluster's API server, at BASALT_CLUSTER_URL, or where the kubeconfig says. Raises Unavailable.

    `part` is whose writes they are: the server keeps `basalt-PART` as the manager of the fields. With `minds_budgets` a
    PodDisruptionBudget's no is a no, whatever the scheduler does about it.
    """
    return connect(
        settings.BASALT_CLUSTER_URL,
        settings.BASALT_CLUSTER_TOKEN,
        settings.BASALT_CLUSTER_CA,
        at_once=settings.BASALT_CLUSTER_AT_ONCE,
        answer_seconds=answer_seconds,
        rate=settings.BASALT_CLUSTER_RATE,
        manager=f"basalt-{part}",
        eviction_fallback="none" if minds_budgets else settings.BASALT_EVICTION_FALLBACK,
    )


@cache
def cluster() -> Admitted:
    """The cluster for controllers: objects mean what admission would have made of them. Raises Unavailable."""
    client = connection(part="controller")
    client.on_answer(metrics.heard)
    return Admitted(client, admission)


@cache
def checked() -> Admitted:
    """The cluster for people: what they write is checked before it is sent. Raises Unavailable."""
    client = connection(minds_budgets=True)
    client.on_answer(metrics.heard)
    return Admitted(client, admission, checks=True)


def namespace() -> str:
    """Where this process's Leases are: BASALT_NAMESPACE, else the namespace of its pod, else `default`."""
    if settings.BASALT_NAMESPACE:
        return str(settings.BASALT_NAMESPACE)
    try:
        return _POD_NAMESPACE.read_text().strip() or "default"
    except OSError:
        return "default"
