"""What a new flow and a new cron job begin from in the editor: small, complete, commented."""

from __future__ import annotations

FLOW = """\
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: prepare, namespace: default}
spec:
  queue: default
  tasks:
    - name: main
      replicas: 1
      template:
        metadata: {annotations: {sim.basalt.dev/duration: 20s}}   # simulated nodes only
        spec:
          restartPolicy: Never
          containers:
            - {name: main, image: busybox, resources: {requests: {cpu: "1", memory: 1Gi}}}
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: train, namespace: default}
spec:
  queue: default
  minAvailable: 4          # a gang: all at once or not at all
  tasks:
    - name: worker
      replicas: 4
      template:
        metadata: {annotations: {sim.basalt.dev/duration: 60s}}
        spec:
          restartPolicy: Never
          containers:
            - {name: main, image: busybox, resources: {requests: {cpu: "2", memory: 4Gi}}}
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: experiment, namespace: default}
spec:
  jobRetainPolicy: retain  # or delete: the jobs go once all have completed
  flows:
    - name: prepare        # the template's name
    - name: train
      dependsOn: {targets: [prepare]}
"""

CRON = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: nightly, namespace: default}
spec:
  schedule: "30 2 * * *"        # minute, hour, day of month, month, day of week
  timeZone: Etc/UTC
  concurrencyPolicy: Forbid     # or Allow, or Replace
  startingDeadlineSeconds: 3600 # later than this a run is left out
  successfulJobsHistoryLimit: 3
  failedJobsHistoryLimit: 1
  jobTemplate:
    spec:
      queue: default
      tasks:
        - name: main
          replicas: 1
          template:
            metadata: {annotations: {sim.basalt.dev/duration: 30s}}   # simulated nodes only
            spec:
              restartPolicy: Never
              containers:
                - {name: main, image: busybox, resources: {requests: {cpu: "1", memory: 1Gi}}}
"""

EXAMPLES = {"flow": FLOW, "cron": CRON}
