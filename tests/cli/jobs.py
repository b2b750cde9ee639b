"""Manifests that the tests submit, and what they wait for."""

from __future__ import annotations

from pathlib import Path

from tests.cli.program import basalt
from tests.e2e.server import wait_for

MORE_THAN_THERE_IS = ("-R", "cpu=900000m,memory=1Gi", "-L", "cpu=900000m,memory=1Gi")
"""What keeps a job of options pending, so that a test finds it so however slow the machine is."""
JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: {name}
  labels: {{team: {team}}}
spec:
  minAvailable: {replicas}
  queue: {queue}
  tasks:
  - name: worker
    replicas: {replicas}
    template:
      metadata:
        annotations: {{sim.basalt.dev/duration: {duration}}}
      spec:
        restartPolicy: Never
        containers:
        - name: main
          image: busybox
          resources:
            requests: {{cpu: "1", memory: 64Mi{gpus}}}
            limits: {{cpu: "2"{gpus}}}
"""


def manifest(
    name: str, *, replicas: int = 2, duration: str = "20s", queue: str = "default", team: str = "a", gpus: int = 0
) -> str:
    asked = f', nvidia.com/gpu: "{gpus}"' if gpus else ""
    return JOB.format(name=name, replicas=replicas, duration=duration, queue=queue, team=team, gpus=asked)


def submitted(name: str, **shape) -> str:
    Path(f"{name}.yaml").write_text(manifest(name, **shape))
    return basalt("submit", f"{name}.yaml").out


def phase(name: str, wanted: str) -> None:
    wait_for(lambda: f" {wanted} " in basalt("job", "list", "--selector", name, "--no-headers").out, what=f"{name} {wanted}")


FLOW = """\
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {{name: {name}-step}}
spec:
  minAvailable: 1
  tasks:
  - name: only
    replicas: 1
    template:
      metadata:
        annotations: {{sim.basalt.dev/duration: 5s}}
      spec:
        restartPolicy: Never
        containers: [{{name: main, image: busybox}}]
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {{name: {name}}}
spec:
  flows: [{{name: {name}-step}}]
"""
