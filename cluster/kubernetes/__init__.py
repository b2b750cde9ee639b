"""A cluster behind a Kubernetes API server, through the official client's configuration and transport."""

from __future__ import annotations

from cluster.kubernetes.client import KubernetesCluster, connect

__all__ = ["KubernetesCluster", "connect"]
