"""What other processes offer, by the addresses that the settings name."""

from __future__ import annotations

from functools import cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from redis import Redis

from cluster.kubernetes import KubernetesCluster, connect


@cache
def redis() -> Redis:
    """Redis, at REDIS_URL."""
    if not settings.REDIS_URL:
        raise ImproperlyConfigured("workers in other processes need Redis: set REDIS_URL, such as redis://127.0.0.1:6379/0")
    return Redis.from_url(settings.REDIS_URL, socket_timeout=30, socket_connect_timeout=5, health_check_interval=30)


@cache
def cluster() -> KubernetesCluster:
    """The cluster's API server, at BASALT_CLUSTER_URL, or where the kubeconfig says. Raises Unavailable."""
    return connect(settings.BASALT_CLUSTER_URL, settings.BASALT_CLUSTER_TOKEN)
