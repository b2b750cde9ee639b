"""The embedded cluster as the Kubernetes API speaks: for kubectl, and for Basalt's own workers in other processes."""

from __future__ import annotations

from cluster.embedded.http.app import KubernetesApi
from cluster.embedded.http.gate import Gate

__all__ = ["Gate", "KubernetesApi"]
